package forge

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
)

// Kinds of an *Error, for errors.Is.
var (
	// ErrNotFound means missing or invisible to the App.
	ErrNotFound = errors.New("not found")
	// ErrGone means deleted or turned off (410).
	ErrGone = errors.New("gone")
	// ErrUninstalled means that the App was uninstalled or suspended, or lost the repository.
	ErrUninstalled = errors.New("the App is not installed there")
	// ErrForbidden means a missing permission.
	ErrForbidden = errors.New("forbidden")
	// ErrUnauthorized means refused credentials, even fresh ones.
	ErrUnauthorized = errors.New("credentials refused")
	// ErrInvalid means refused content (400, 409, 422).
	ErrInvalid = errors.New("request refused")
	// ErrUnavailable means no proper answer. A creation may have been done.
	ErrUnavailable = errors.New("GitHub unavailable")
)

// Error is a call that GitHub refused or did not answer.
type Error struct {
	Method  string
	Path    string
	Status  int    // zero without an answer
	Message string // GitHub's text, redacted
	Hint    string
	Kind    error // one of the Err values above
	Cause   error // connection error, or nil
}

func (e *Error) Error() string {
	status, cause := "no answer", ""
	if e.Status != 0 {
		status = fmt.Sprintf("%d %s", e.Status, http.StatusText(e.Status))
	}
	if e.Cause != nil {
		cause = e.Cause.Error()
	}
	text := render.Joined(": ", e.Method+" "+e.Path, status, e.Message, cause)
	return secret.Redact(render.Joined("; ", text, e.Hint))
}

func (e *Error) Unwrap() []error {
	if e.Cause == nil {
		return []error{e.Kind}
	}
	return []error{e.Kind, e.Cause}
}

// RateLimited means that a request must wait. The caller stores the wait instead of sleeping. Nothing was done unless
// the error is also ErrUnavailable, which means that a lost answer has not been looked up yet. Cosmetic requests
// return RateLimited after at most ten seconds. After Until, send the newest state.
type RateLimited struct {
	Method    string
	Path      string
	Until     time.Time
	Secondary bool // false for the hourly limit
}

func (e *RateLimited) Error() string {
	which := "hourly"
	if e.Secondary {
		which = "secondary"
	}
	return fmt.Sprintf("%s %s: GitHub's %s rate limit: wait until %s", e.Method, e.Path, which, e.Until.UTC().Format(time.RFC3339))
}

// Moved means that the repository was renamed. Nothing was written.
type Moved struct {
	Method string
	Path   string
	To     string // new owner/name, or the redirect's URL
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
		"check https://www.githubstatus.com and this machine's network, and try again later",
		ErrUnavailable,
	}
	notGitHub = "check github.v3_api_url and the proxies between this machine and GitHub"
)

// explanations holds the default explanations by HTTP status.
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

// legallyBlocked explains answers with the field "block" (docs.github.com, responses 403 and 451).
var legallyBlocked = explanation{"GitHub blocked this repository; its owner must contact GitHub's support", ErrForbidden}

// refusals map GitHub's sentences in a 403 or 451 to explanations. A single word does not suffice, since it may come
// from a name or a rule. Sources: docs.github.com, "Troubleshooting the REST API", and public reports.
var refusals = []struct {
	sentence *regexp.Regexp
	explanation
}{
	// Seen in atlassian/github-for-jira#961 and renovatebot/renovate#20253.
	{sentence(`.*has an IP allow list enabled\b`), explanation{"let this server's address into the organization's IP allow list; Pawl then continues by itself", ErrUnavailable}},
	{sentence(`Resource protected by organization SAML enforcement`), explanation{"the organization's single sign-on refuses the App; one of its owners must authorize it, then Pawl continues by itself", ErrUnavailable}},
	{sentence(`This installation has been suspended`), explanation{"the installation is suspended; unsuspend it on its settings page", ErrUninstalled}},
	{sentence(`(?:Sorry\. )?Your account (?:was|is) suspended`), explanation{"GitHub suspended the account; its owner must contact GitHub's support", ErrUninstalled}},
	{sentence(`Repository was archived`), explanation{"the repository is archived; unarchive it to continue", ErrForbidden}},
	{sentence(`Repository (?:access blocked|unavailable due to)`), legallyBlocked},
	{sentence(`User is blocked`), explanation{"the account blocked the App's user; unblock it in the account's settings", ErrForbidden}},
	{sentence(`(?:.* because )?(?:the |this )?(?:issue|pull request|conversation|discussion) is locked\b`), explanation{"a maintainer must unlock it", ErrForbidden}},
	{sentence(`Upgrade to `), explanation{"the account's plan does not include this feature", ErrForbidden}},
	{sentence(`Request forbidden by administrative rules`), explanation{notGitHub, ErrForbidden}},
}

// sentence matches the start of a message.
func sentence(pattern string) *regexp.Regexp { return regexp.MustCompile(`(?i)^(?:` + pattern + `)`) }

// missingHint names the permissions that GitHub asks for, or nothing.
func missingHint(a answer) string {
	needed := a.header.Get("X-Accepted-Github-Permissions")
	if needed == "" || !a.mentions("not accessible by integration") {
		return ""
	}
	return "the App lacks a permission (" + clip(needed, 200) + "); grant it in the App's settings and accept it on the installation's page"
}

func explain(a answer) (hint string, kind error) {
	switch a.status {
	case http.StatusForbidden, http.StatusUnavailableForLegalReasons:
		if a.blocked {
			return legallyBlocked.hint, legallyBlocked.kind
		}
		for _, r := range refusals {
			if r.sentence.MatchString(a.message) {
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

// redirected distinguishes renames from redirects by proxies and login pages.
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
		Hint:    "that is not an answer from GitHub's API; " + notGitHub,
	}
}

// isElsewhere recognises GitHub's redirects to "repositories/ID/…" or "repos/…" after a rename.
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
	if a.isForeign() {
		hint = "this is not an answer from GitHub's API; " + notGitHub
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
		e.Cause = a.err // no usable answer
	}
	return e
}
