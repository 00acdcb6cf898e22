package forge

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
)

// The kinds of an *Error, for errors.Is.
var (
	// ErrNotFound: it does not exist, or the App may not see it.
	ErrNotFound = errors.New("not found")
	// ErrGone: it was deleted, or the feature is turned off (410).
	ErrGone = errors.New("gone")
	// ErrUninstalled: the App was uninstalled or suspended, or lost the repository.
	ErrUninstalled = errors.New("the App is not installed there")
	// ErrForbidden: the App may not do this.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthorized: GitHub refused the App's credentials, also fresh ones.
	ErrUnauthorized = errors.New("credentials refused")
	// ErrInvalid: GitHub refused the content of the request (400, 409, 422).
	ErrInvalid = errors.New("request refused")
	// ErrUnavailable: no proper answer after all tries. A creation may have been done.
	ErrUnavailable = errors.New("GitHub unavailable")
)

// Error is a call that GitHub refused or did not answer.
type Error struct {
	Method  string
	Path    string
	Status  int    // the HTTP status; zero when no answer arrived
	Message string // GitHub's own text, redacted
	// Hint says what to do.
	Hint  string
	Kind  error // one of the Err values of this package
	Cause error // the connection's error; nil if GitHub answered
}

func (e *Error) Error() string {
	status, cause := "no answer", ""
	if e.Status != 0 {
		status = fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	said := render.Joined(": ", e.Method+" "+e.Path, status, e.Message, cause)
	return secret.Redact(render.Joined("; ", said, e.Hint))
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// RateLimited says that this request cannot be sent before Until. The caller stores the wait and must not sleep.
// Nothing was done, unless the error is also ErrUnavailable: then an answer was lost before, and the look-up is
// postponed.
//
// Requests that only show the work's state (check runs, edits of a comment) return it after at most ten seconds.
// The work should continue, and the newest state be shown after Until.
type RateLimited struct {
	Method    string
	Path      string
	Until     time.Time
	Secondary bool // true for the secondary limits and Pawl's own pacing, false for the hourly limit
}

func (e *RateLimited) Error() string {
	which := "hourly"
	if e.Secondary {
		which = "secondary"
	}
	return fmt.Sprintf("%s %s: GitHub's %s rate limit: wait until %s", e.Method, e.Path, which, e.Until.UTC().Format(time.RFC3339))
}

// Moved says that the repository was renamed. Nothing was written.
type Moved struct {
	Method string
	Path   string
	To     string // the new owner/name, or if unknown the URL of the redirect
}

func (e *Moved) Error() string {
	return fmt.Sprintf("%s %s: the repository was renamed or moved to %s; use that name", e.Method, e.Path, secret.Redact(e.To))
}

type explanation struct {
	hint string
	kind error
}

var (
	forbidden = explanation{
		"compare the App's permissions with app.yml and accept new ones on the installation's page",
		ErrForbidden,
	}
	unavailable = explanation{
		"see https://www.githubstatus.com and the network of this machine; it can be tried again later",
		ErrUnavailable,
	}
	// notGitHub is the hint for other servers' answers.
	notGitHub = "look at github.v3_api_url and at the proxies on the way"
)

// explanations are by HTTP status.
var explanations = map[int]explanation{
	http.StatusUnauthorized: {
		"compare github.app.integration_id and the private key with the App's settings page, " +
			"and this machine's clock with the real time",
		ErrUnauthorized,
	},
	http.StatusForbidden:                  forbidden,
	http.StatusUnavailableForLegalReasons: forbidden,
	http.StatusNotFound: {
		"check that it still exists under this name and that the App is installed on the repository",
		ErrNotFound,
	},
	http.StatusGone: {
		"it was deleted, or issues are turned off in this repository",
		ErrGone,
	},
	http.StatusRequestTimeout: unavailable,
}

// refusals are the reasons that GitHub gives for a 403 or a 451, as lower-case words of its message. The first match
// counts. A refusal of the server's address or of the App's login says nothing about what was asked: work continues
// afterwards. The sources are docs.github.com, "Troubleshooting the REST API", and public reports.
var refusals = []struct {
	words string
	explanation
}{
	// atlassian/github-for-jira#961, renovatebot/renovate#20253.
	{"ip allow list", explanation{"let this server's address into the organization's IP allow list; Pawl then continues by itself", ErrUnavailable}},
	{"saml", explanation{"the organization's single sign-on refuses the App; one of its owners must authorize it, then Pawl continues by itself", ErrUnavailable}},
	{"installation has been suspended", explanation{"the installation is suspended; unsuspend it on its settings page", ErrUninstalled}},
	{"suspended", explanation{"GitHub suspended the account; its owner must contact GitHub's support", ErrUninstalled}},
	{"archived", explanation{"the repository is archived; unarchive it to continue", ErrForbidden}},
	{"access blocked", explanation{"GitHub blocked this repository; its owner must contact GitHub's support", ErrForbidden}},
	{"unavailable due to", explanation{"GitHub blocked this repository; its owner must contact GitHub's support", ErrForbidden}},
	{"user is blocked", explanation{"the account blocked the App's user; unblock it in the account's settings", ErrForbidden}},
	{"locked", explanation{"a maintainer must unlock it", ErrForbidden}},
	{"upgrade to", explanation{"the account's plan does not include this feature", ErrForbidden}},
	{"administrative rules", explanation{notGitHub, ErrForbidden}},
}

// missingHint names the permissions that GitHub's answer asks for; empty for none.
func missingHint(a answer) string {
	needed := a.header.Get("X-Accepted-Github-Permissions")
	if needed == "" || !a.says("not accessible by integration") {
		return ""
	}
	return "the App lacks a permission (" + clip(needed, 200) + "); grant it in the App's settings and accept it on the installation's page"
}

func explain(a answer) (hint string, kind error) {
	switch a.status {
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		for _, r := range refusals {
			if a.says(r.words) {
				return r.hint, r.kind
			}
		}
		if hint := missingHint(a); hint != "" {
			return hint, ErrForbidden
		}
	}
	known, ok := explanations[a.status]
	if ok {
		return known.hint, known.kind
	}
	if a.status/100 == 4 {
		return "GitHub will refuse the same request again", ErrInvalid
	}
	return unavailable.hint, unavailable.kind
}

// redirected separates a renamed repository or moved issue from a proxy's redirect or a login page.
func (c *call) redirected() error {
	a := c.last
	to := a.header.Get("Location")
	if c.isElsewhere(to) {
		return &Moved{Method: c.method, Path: a.path, To: to}
	}
	return &Error{
		Method:  c.method,
		Path:    a.path,
		Status:  a.status,
		Message: "redirected to " + secret.Redact(clip(to, 200)),
		Kind:    ErrUnavailable,
		Hint:    "that is no answer of GitHub's API; " + notGitHub,
	}
}

// isElsewhere recognises GitHub's own redirects after a rename, to "repositories/ID/…" of its API.
func (c *call) isElsewhere(address string) bool {
	at, err := c.api.Parse(address)
	if err != nil {
		return false
	}
	rest, within := strings.CutPrefix(at.Path, c.api.Path)
	if !within || at.Host != c.api.Host || at.Path == c.last.path {
		return false
	}
	return strings.HasPrefix(rest, "repositories/") || strings.HasPrefix(rest, "repos/")
}

func (c *call) failure() error {
	a := c.last
	if a.status/100 == 3 {
		return c.redirected()
	}
	read := explain
	if c.explain != nil {
		read = c.explain
	}
	hint, kind := read(a)
	if a.isPage() {
		hint = "this is a page and no answer of GitHub's API; " + notGitHub
		kind = ErrUnavailable
	}
	e := &Error{
		Method:  c.method,
		Path:    a.path,
		Status:  a.status,
		Message: a.message,
		Kind:    kind,
		Hint:    hint,
	}
	if a.status < 300 {
		e.Cause = a.err // no answer, or a broken one
	}
	return e
}
