package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/text"
)

// The kinds of an *Error, for errors.Is.
var (
	// ErrNotFound: the thing does not exist, or the App may not see it.
	ErrNotFound = errors.New("not found")
	// ErrGone: the thing was deleted, or the feature is turned off (410).
	ErrGone = errors.New("gone")
	// ErrUninstalled: the App was uninstalled or suspended, or the repository was taken out.
	ErrUninstalled = errors.New("the App is not installed there")
	// ErrForbidden: the App may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthorized: GitHub refused the App's credentials, fresh ones too.
	ErrUnauthorized = errors.New("credentials refused")
	// ErrInvalid: GitHub refused the content of the request (400, 409, 422).
	ErrInvalid = errors.New("request refused")
	// ErrUnavailable: no proper answer after all tries. A creation may still have been done.
	ErrUnavailable = errors.New("GitHub unavailable")
)

// Error is a call that GitHub did not do, or did not answer.
type Error struct {
	Method  string
	Path    string
	Status  int    // the HTTP status; zero when no answer arrived
	Message string // GitHub's own text, redacted
	// Hint says what to do.
	Hint  string
	Kind  error // one of the Err values of this package
	Cause error // what broke the connection; nil when GitHub answered
}

// Error returns one line: request, status, GitHub's message, hint.
func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: ", e.Method, e.Path)
	if e.Status == 0 {
		b.WriteString("no answer")
	} else {
		fmt.Fprintf(&b, "%d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Message != "" {
		b.WriteString(": " + e.Message)
	}
	if e.Cause != nil {
		b.WriteString(": " + e.Cause.Error())
	}
	if e.Hint != "" {
		b.WriteString("; " + e.Hint)
	}
	return text.Redact(b.String())
}

// Unwrap gives the kind and the cause to errors.Is and errors.As.
func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// RateLimited says that this request cannot be sent before Until. The caller stores the wait and must
// not sleep. Nothing was done, unless the error is also ErrUnavailable: then an answer was lost before,
// and looking it up had to be put off.
//
// What only shows how the work stands (check runs, edits of a comment) returns it after ten seconds at
// most. The work should go on, and the newest state be shown after Until.
type RateLimited struct {
	Method    string
	Path      string
	Until     time.Time // when GitHub may be asked again
	Secondary bool      // true for the secondary limits and Pawl's own pacing, false for the hourly limit
}

func (e *RateLimited) Error() string {
	which := "hourly"
	if e.Secondary {
		which = "secondary"
	}
	return fmt.Sprintf("%s %s: GitHub's %s rate limit: wait until %s", e.Method, e.Path, which, e.Until.UTC().Format(time.RFC3339))
}

// Moved says that the repository has another name now. Nothing was written.
type Moved struct {
	Method string
	Path   string
	To     string // the new owner/name, or where that is not known the address that GitHub pointed to
}

func (e *Moved) Error() string {
	return fmt.Sprintf("%s %s: the repository was renamed or moved to %s; use that name", e.Method, e.Path, text.Redact(e.To))
}

// explain gives the kind and the hint for an answer that is final.
func explain(a answer) (hint string, kind error) {
	switch {
	case a.status == http.StatusUnauthorized:
		return "compare github.app.integration_id and the private key with the App's settings page, and this machine's clock with the real time", ErrUnauthorized
	case a.status == http.StatusForbidden && strings.Contains(strings.ToLower(a.message), "suspended"):
		return "the installation is suspended; unsuspend it on its settings page", ErrUninstalled
	case a.status == http.StatusForbidden, a.status == http.StatusUnavailableForLegalReasons:
		return "unless it is archived or locked, compare the App's permissions with app.yml and accept new ones on the installation's page", ErrForbidden
	case a.status == http.StatusNotFound:
		return "check that it still exists and that the App is installed on the repository", ErrNotFound
	case a.status == http.StatusGone:
		return "it was deleted, or issues are turned off in this repository", ErrGone
	case a.status >= 400 && a.status < 500 && a.status != http.StatusRequestTimeout:
		return "GitHub will refuse the same request again", ErrInvalid
	default:
		return "see https://www.githubstatus.com and the network of this machine; it can be tried again later", ErrUnavailable
	}
}

// redirected tells a repository or an issue that is elsewhere now, by "repositories/ID/…" of GitHub's
// own API, from the redirect of a proxy or a page for logging in.
func (c *call) redirected() error {
	a := c.last
	to := a.header.Get("Location")
	if at, err := c.api.Parse(to); err == nil && at.Host == c.api.Host && at.Path != a.path {
		rest, ok := strings.CutPrefix(at.Path, c.api.Path)
		if ok && (strings.HasPrefix(rest, "repositories/") || strings.HasPrefix(rest, "repos/")) {
			return &Moved{Method: c.method, Path: a.path, To: to}
		}
	}
	return &Error{Method: c.method, Path: a.path, Status: a.status, Message: "redirected to " + text.Redact(clip(to, 200)), Kind: ErrUnavailable,
		Hint: "that is no answer of GitHub's API; look at github.v3_api_url and at the proxies on the way"}
}

// failure makes the error for the last answer, which ends the call.
func (c *call) failure() error {
	a := c.last
	if a.status >= 300 && a.status < 400 {
		return c.redirected()
	}
	read := explain
	if c.explain != nil {
		read = c.explain
	}
	hint, kind := read(a)
	if isPage(a) {
		hint, kind = "this is a page and no answer of GitHub's API; look at github.v3_api_url and at the proxies on the way", ErrUnavailable
	}
	e := &Error{Method: c.method, Path: a.path, Status: a.status, Message: a.message, Kind: kind, Hint: hint}
	if a.status < 300 {
		e.Cause = a.err // no answer, or one that broke off
	}
	return e
}
