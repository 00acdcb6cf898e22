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
	method  string // empty for GET
	route   string // path; {owner} and {repo} come from repo, other braces from args in order
	args    []any
	query   url.Values
	body    any // JSON, or nil
	as      credentials
	repo    Repo    // supplies the token for asInstallation; only the installation for asToken
	token   string  // preset for asToken, otherwise from Token
	urgency urgency // its priority within the limits
	reads   bool    // the POST changes nothing
	lags    bool    // a 404 may come from a lagging replica
	// once disables caching.
	once bool
	// location means that the answer is a redirect to any host, which is not followed.
	location bool
	// holds names required fields of the answer.
	holds []string
	// find looks for a creation whose answer was lost; nil if repeating is harmless.
	find func(context.Context) (bool, error)
	// explain replaces the default explain for final answers.
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

// call is a request in progress, found in the request's context.
type call struct {
	request
	*Client
	patience  time.Duration // remaining wait for limits
	placed    time.Time     // when it got its slot
	mayBeLate bool          // send the request even if late
	last      answer
	ended     error // final error of the chain
}

type callKey struct{}

func callOf(req *http.Request) *call { return req.Context().Value(callKey{}).(*call) }

// chain returns the RoundTrippers of a request, outermost first.
func (c *Client) chain() http.RoundTripper {
	sending := caching{next: wire{}, cache: c.cache}
	return retrying{refreshing{pacing{authorizing{sending}}}}
}

// errFound means that a write succeeded although its answer was lost.
var errFound = errors.New("found at GitHub")

// do sends a request until it succeeds, fails or runs out of tries, and decodes the answer. A write that find
// confirms returns neither value nor response.
func (c *Client) do(ctx context.Context, r request, into any) (*github.Response, error) {
	r.method = cmp.Or(r.method, http.MethodGet)
	it := &call{request: r, Client: c, patience: c.patience(r)}
	it.last.path = r.route
	ctx = context.WithValue(ctx, callKey{}, it)
	// go-github stores limits for all installations together, so each call needs a new client.
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
	if it.last.class() == done { // the answer cannot be decoded
		it.last.err = err
	}
	return nil, it.failure()
}

// pageSize is GitHub's maximum page size.
const pageSize = 100

// page reads one page and returns the next page's number, or zero.
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

// readPages reads up to maxPages pages of a list.
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

// wire sends a request and reads the whole answer. A broken answer is an error.
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

// maxRedirects limits redirects of a read; GitHub sends one for a renamed repository.
const maxRedirects = 3

// follow follows redirects of reads on the same host. http.Client would turn a redirected POST into a GET.
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
