package forge

import (
	"errors"
	"io"
	"net/http"
	"time"
)

// maxAnswer bounds one answer in bytes. The largest that Pawl asks for is a
// page of 100 comments of at most 65,536 characters, four bytes each.
const maxAnswer = 32 << 20

// maxRedirects is how many redirects a read follows: GitHub sends one for a
// renamed repository.
const maxRedirects = 3

// errLate says that a request was not sent, because its place had gone by.
var errLate = errors.New("too late for its place within GitHub's limits")

var errTooLarge = errors.New("the answer is larger than 32 MiB")

// wire carries the requests of one try. It adds the token and notes what came
// back, because go-github's errors do not always carry it.
type wire struct {
	base   http.RoundTripper
	cache  *cache
	caller int64 // whose answers may be kept for this try
	kept   []cacheKey
	once   bool // no answer is kept
	token  string
	late   func() bool   // whether the first request has missed its place; nil when it was sent
	waited time.Duration // for the place
	sent   func()
	path   string
	status int
	header http.Header
	// unchanged says that the last answer was a 304.
	unchanged bool
}

// RoundTrip sends one request. The token goes to the API's host only: follow
// lets no redirect lead elsewhere.
func (w *wire) RoundTrip(req *http.Request) (*http.Response, error) {
	req = req.Clone(req.Context())
	if w.token != "" {
		req.Header.Set("Authorization", "Bearer "+w.token)
	}
	key := cacheKey{w.caller, req.URL.String()}
	var old *kept
	if req.Method == http.MethodGet && !w.once {
		if k, ok := w.cache.get(key); ok {
			old = k
			req.Header.Set("If-None-Match", k.header.Get("ETag"))
		}
	}
	w.path, w.status, w.header = req.URL.Path, 0, nil
	if err := fenced(req); err != nil {
		return nil, err
	}
	if w.late != nil && w.late() {
		return nil, errLate
	}
	w.late = nil
	w.sent()
	resp, err := w.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if req.Method == http.MethodGet && !w.once {
		w.unchanged = resp.StatusCode == http.StatusNotModified
		w.kept = append(w.kept, key)
		w.cache.read(key, old, resp)
	}
	w.status, w.header = resp.StatusCode, resp.Header
	resp.Body = &boundedBody{ReadCloser: resp.Body, left: maxAnswer}
	return resp, nil
}

// follow lets a read go where GitHub points on the same host, and stops
// everything else: http.Client would turn a redirected POST into a GET, and a
// write that lands elsewhere is not what the caller asked for.
func follow(req *http.Request, via []*http.Request) error {
	first := via[0]
	sameHost := req.URL.Host == first.URL.Host && req.URL.Scheme == first.URL.Scheme
	if first.Method != http.MethodGet || !sameHost || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

// boundedBody fails instead of ending when more than left bytes arrive, so
// that a cut answer is not taken for a whole one.
type boundedBody struct {
	io.ReadCloser
	left int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, errTooLarge
	}
	if int64(len(p)) > b.left {
		p = p[:b.left]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	return n, err
}
