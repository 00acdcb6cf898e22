package fakegithub

import (
	"net/http"
	"slices"
	"strings"
)

// access is who may call a route at all.
type access int

const (
	anyone  access = iota // also without credentials
	asApp                 // the App's JWT
	asToken               // an installation or personal token
)

// rank orders roles and permissions; what is unknown is below none.
func rank(name string) int {
	return slices.Index([]string{"none", "read", "triage", "write", "maintain", "admin"}, name)
}

// admit decides whether the caller may use the route; nil means yes.
func (c *call) admit(rt *route) *reply {
	switch {
	case rt.access == asApp && (c.who.app == nil || c.who.token != nil):
		return problem(http.StatusUnauthorized, "A JSON web token could not be decoded")
	case rt.access == asToken && c.who.token == nil && c.repo != nil && c.repo.public && strings.HasSuffix(rt.permission, ":read"):
		return nil
	case rt.access == asToken && c.who.token == nil && c.who.app == nil && c.repo != nil && !c.repo.public:
		return notFound() // who may not know of a repository is not told that it exists
	case rt.access == asToken && c.who.token == nil:
		return problem(http.StatusUnauthorized, "Requires authentication")
	case rt.access != asToken || c.repo == nil:
		return nil
	}
	if !c.sees(c.repo) {
		return notFound()
	}
	if rt.permission == "" {
		return nil
	}
	for _, permission := range strings.Split(rt.permission, "|") {
		if c.has(permission) {
			return nil
		}
	}
	return c.forbidden(rt.permission)
}

// sees tells whether the caller knows of the repository; to all others it does
// not exist (404, as GitHub answers for private repositories).
func (c *call) sees(r *repository) bool {
	tok := c.who.token
	switch {
	case r.public:
		return true
	case tok == nil:
		return false
	case tok.user != nil:
		return r.role(tok.user) != "none"
	}
	return tok.covers(r)
}

// covers tells whether an installation token is for this repository.
func (tok *token) covers(r *repository) bool {
	return tok.installation.repos[r.id] && (tok.repos == nil || tok.repos[r.id])
}

// has tells whether the caller holds a permission such as "issues:write" in the
// repository of the call.
func (c *call) has(permission string) bool {
	name, level, _ := strings.Cut(permission, ":")
	tok := c.who.token
	switch {
	case tok == nil: // admitted to a public repository only
		return level == "read"
	case tok.user == nil && !tok.covers(c.repo):
		return c.repo.public && level == "read"
	case tok.user == nil:
		return rank(tok.permissions[name]) >= rank(level)
	}
	role := rank(c.repo.role(tok.user))
	switch {
	case name == "checks" && level == "write":
		return false // only Apps write check runs
	case name == "issues" || name == "pull_requests" || level == "read":
		return role >= rank("read") // people who read may also comment
	}
	return role >= rank(level)
}

func (c *call) forbidden(permission string) *reply {
	if c.who.token.user == nil {
		return problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	if permission == "checks:write" {
		return problem(http.StatusForbidden, "You must authenticate via a GitHub App.")
	}
	return problem(http.StatusForbidden, "Must have write access to the repository.")
}

// mayTouch says whether the caller may write on a thread: for an App the
// permission of its kind, issues or pull requests.
func (c *call) mayTouch(t *thread) *reply {
	if c.who.token.user != nil || c.has("issues:write") || (t.pull != nil && c.has("pull_requests:write")) {
		return nil
	}
	return c.forbidden("issues:write")
}

// mayLabel says whether the caller may set labels on a thread. People need the
// triage role for it, unlike for writing.
func (c *call) mayLabel(t *thread) *reply {
	if refused := c.mayTouch(t); refused != nil {
		return refused
	}
	if c.triages() {
		return nil
	}
	return problem(http.StatusForbidden, "Must have admin rights to Repository.")
}

// triages tells whether labels that the caller sends count. "Labels are silently
// dropped otherwise" (REST API, create an issue and update an issue).
func (c *call) triages() bool {
	user := c.who.token.user
	return user == nil || rank(c.repo.role(user)) >= rank("triage")
}

// mayChange says whether the caller may change or delete what author wrote:
// one's own texts, or with write access anybody's.
func (c *call) mayChange(author *account) *reply {
	tok := c.who.token
	if tok.user == nil || tok.user.id == author.id || rank(c.repo.role(tok.user)) >= rank("write") {
		return nil
	}
	return problem(http.StatusForbidden, "Must have admin rights to Repository.")
}
