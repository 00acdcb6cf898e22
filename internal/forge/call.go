package forge

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"
)

type credentials int

const (
	asInstallation credentials = iota
	asApp
	anonymous
	asToken
)

type request struct {
	method  string // empty means GET
	route   string // the path; {owner} and {repo} are the repository's, other braces are args in order
	args    []any
	query   url.Values
	body    any // as JSON; nil for none
	as      credentials
	repo    Repo    // its token is used with asInstallation; with asToken only its installation counts
	token   string  // the token for asToken, or from Token for asInstallation
	urgency urgency // its priority within the limits
	reads   bool    // a POST that changes nothing
	lags    bool    // a 404 may come from a replica that does not know the thing yet
	// once says that the answer is not read again, and not worth caching.
	once bool
	// location says that the answer is a redirect to any host, which is not followed.
	location bool
	// holds names the fields of a valid answer.
	holds []string
	// find looks up whether a creation with a lost answer was done; nil: repeating it is harmless.
	find func(context.Context) (bool, error)
	// explain replaces the function explain for final answers; nil keeps it.
	explain func(answer) (hint string, kind error)
}

func (r request) writes() bool { return r.method != http.MethodGet && !r.reads }

var braces = regexp.MustCompile(`\{[a-z]+\}`)

func (r request) address() string {
	args := r.args
	if strings.HasPrefix(r.route, "/repos/") {
		args = append([]any{r.repo.Owner, r.repo.Name}, args...)
	}
	path := braces.ReplaceAllStringFunc(r.route[1:], func(string) string {
		next := args[0]
		args = args[1:]
		return url.PathEscape(fmt.Sprint(next))
	})
	if len(r.query) > 0 {
		path += "?" + r.query.Encode()
	}
	return path
}

func (r request) limitKey() int64 {
	switch r.as {
	case asApp:
		return asAppKey
	case anonymous:
		return anonymousKey
	default:
		return r.repo.Installation
	}
}

// call is a request in progress. The chain's RoundTrippers find it in the request's context.
type call struct {
	request
	*Client
	patience  time.Duration // remaining waits for limits
	placed    time.Time     // when it got its slot within the limits
	mayBeLate bool          // it is sent however late it is ready
	last      answer
	ended     error // the chain's final error
}

type callKey struct{}

func callOf(req *http.Request) *call { return req.Context().Value(callKey{}).(*call) }

// chain is the RoundTrippers of each request, from the outermost to the network.
func (c *Client) chain() http.RoundTripper {
	sending := caching{next: wire{}, cache: c.cache}
	return retrying{refreshing{pacing{authorizing{sending}}}}
}

// errFound says that a write with a lost answer was done.
var errFound = errors.New("found at GitHub")

// do sends a request until it is done, refused, or out of tries, and decodes the answer. If a write was done
// although its answer was lost, there is neither value nor response; find has it.
func (c *Client) do(ctx context.Context, r request, into any) (*github.Response, error) {
	r.method = cmp.Or(r.method, http.MethodGet)
	it := &call{request: r, Client: c, patience: c.patience(r)}
	it.last.path = r.route
	ctx = context.WithValue(ctx, callKey{}, it)
	// go-github remembers limits by its own clock and for all installations together, so each call gets a new
	// client; this package remembers limits itself.
	gh := github.NewClient(&http.Client{CheckRedirect: r.follow, Transport: c.chain()})
	gh.BaseURL, gh.UserAgent = c.api, c.cfg.UserAgent
	address := r.address()
	if r.route == graphRoute {
		address = c.cfg.GraphURL
	}
	req, err := gh.NewRequest(r.method, address, r.body)
	if err != nil {
		return nil, err
	}
	resp, err := gh.Do(ctx, req, into)
	switch {
	case err == nil, r.wantsRedirect(it.last.status) && resp != nil:
		return resp, nil
	case errors.Is(it.ended, errFound):
		return nil, nil
	case it.ended != nil:
		return nil, it.ended
	}
	if it.last.class() == done { // GitHub's answer cannot be decoded
		it.last.err = err
	}
	return nil, it.failure()
}

// pageSize is the largest page GitHub gives.
const pageSize = 100

// page reads one page of a list, and returns the next page's number, zero after the last.
func (c *Client) page(ctx context.Context, repo Repo, r request, page int, into any) (next int, err error) {
	q := url.Values{"per_page": {strconv.Itoa(pageSize)}, "page": {strconv.Itoa(page)}}
	maps.Copy(q, r.query)
	r.query = q
	resp, err := c.on(ctx, repo, r, into)
	if err != nil || resp.NextPage <= page {
		return 0, err
	}
	return resp.NextPage, nil
}

// readPages reads the first maxPages pages of a list. It is a function because methods have no type parameters.
func readPages[T any](ctx context.Context, c *Client, repo Repo, maxPages int, r request) (list []T, err error) {
	for page := 1; page != 0 && page <= maxPages; {
		var got []T
		if page, err = c.page(ctx, repo, r, page, &got); err != nil {
			return nil, err
		}
		list = append(list, got...)
	}
	return list, nil
}

// wire is the RoundTripper that sends a request and reads the whole answer. A broken answer is an error.
type wire struct{}

func (wire) RoundTrip(req *http.Request) (*http.Response, error) {
	c := callOf(req)
	c.sent.WithLabelValues(c.method, c.route).Inc()
	c.last.sent = true
	base := http.RoundTripper(c.Clock)
	if c.as == asApp {
		base = c.signed
	}
	resp, err := base.RoundTrip(req)
	if err != nil {
		c.last.err = err
		return nil, err
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	_ = resp.Body.Close()
	if len(body) > maxAnswer {
		err = errors.New("the answer is larger than 32 MiB")
	}
	c.last.read(resp, body, err, c.holds)
	resp.Body = io.NopCloser(bytes.NewReader(body))
	resp.ContentLength = int64(len(body))
	return resp, c.last.err
}

// maxRedirects is how many redirects a read follows: GitHub sends one for a renamed repository.
const maxRedirects = 3

// follow follows GitHub's redirects of reads on the same host only: http.Client would turn a redirected POST into a
// GET, and a write elsewhere was not asked for.
func (r request) follow(req *http.Request, via []*http.Request) error {
	first := via[0]
	if first.Method != http.MethodGet || r.wantsRedirect(req.Response.StatusCode) {
		return http.ErrUseLastResponse
	}
	if !sameOrigin(req.URL, first.URL) || len(via) > maxRedirects {
		return http.ErrUseLastResponse
	}
	return nil
}

func (r request) wantsRedirect(status int) bool {
	return r.location && status == http.StatusFound
}

func sameOrigin(a, b *url.URL) bool { return a.Host == b.Host && a.Scheme == b.Scheme }
