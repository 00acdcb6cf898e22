package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
)

func (s *Server) getApp(c *call) *reply {
	body := s.renderApp(s.world.app)
	body["installations_count"] = len(s.world.installations)
	return ok(body)
}

func (s *Server) listInstallations(c *call) *reply {
	var live []*installation
	for _, in := range s.world.installations {
		if !in.removed {
			live = append(live, in)
		}
	}
	return page(s, c, live, s.renderInstallation, array)
}

func (s *Server) getInstallation(c *call) *reply {
	if in := s.world.installationByID(c.id()); in != nil {
		return ok(s.renderInstallation(in))
	}
	return notFound()
}

func (s *Server) getRepoInstallation(c *call) *reply {
	if in := s.world.installationOf(c.repo); in != nil {
		return ok(s.renderInstallation(in))
	}
	return notFound()
}

// maxTokenRepos is how many repositories a token can be narrowed to ("Up to 500
// repositories can be listed in this manner").
const maxTokenRepos = 500

func (s *Server) createToken(c *call) *reply {
	in := s.world.installationByID(c.id())
	if in == nil {
		return notFound()
	}
	if !in.suspended.IsZero() {
		return problem(http.StatusForbidden, "This installation has been suspended")
	}
	var want struct {
		Repositories  []string          `json:"repositories"`
		RepositoryIDs []int64           `json:"repository_ids"`
		Permissions   map[string]string `json:"permissions"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	tok := &token{installation: in, permissions: want.Permissions, expires: s.now().Add(tokenLife), value: newInstallationToken()}
	if bad := s.narrow(tok, want.Permissions); bad != nil {
		return bad
	}
	if n := len(want.Repositories) + len(want.RepositoryIDs); n > maxTokenRepos {
		return invalid(fmt.Sprintf("No more than %d items are allowed; %d were supplied.", maxTokenRepos, n))
	}
	body := obj{"token": tok.value, "expires_at": stamp(tok.expires), "permissions": tok.permissions, "repository_selection": "selected"}
	if len(want.Repositories)+len(want.RepositoryIDs) > 0 {
		tok.repos = map[int64]bool{}
		rendered := []obj{}
		for _, r := range s.world.reposOf(in) {
			if slices.Contains(want.RepositoryIDs, r.id) || slices.ContainsFunc(want.Repositories, func(n string) bool { return strings.EqualFold(n, r.name) }) {
				tok.repos[r.id] = true
				rendered = append(rendered, s.renderRepo(r))
			}
		}
		if len(tok.repos) < max(len(want.Repositories), len(want.RepositoryIDs)) {
			return problem(http.StatusUnprocessableEntity, "There is at least one repository that does not exist or is not accessible to the parent installation.")
		}
		body["repositories"] = rendered
	}
	s.forgetExpired()
	s.world.tokens[tok.value] = tok
	return created(body)
}

// narrow sets the permissions of a token: those asked for, which the
// installation must have, or all of the installation's.
func (s *Server) narrow(tok *token, want map[string]string) *reply {
	granted := s.world.app.permissions
	if len(want) == 0 {
		tok.permissions = granted
		return nil
	}
	for name, level := range want {
		if rank(granted[name]) < rank(level) || rank(level) <= 0 {
			return problem(http.StatusUnprocessableEntity, "The permissions requested are not granted to this installation.")
		}
	}
	tok.permissions = map[string]string{"metadata": "read"}
	for name, level := range want {
		tok.permissions[name] = level
	}
	return nil
}

// forgetExpired keeps the token table small in long runs.
func (s *Server) forgetExpired() {
	for value, tok := range s.world.tokens {
		if !tok.expires.IsZero() && !s.now().Before(tok.expires) {
			delete(s.world.tokens, value)
		}
	}
}

func (s *Server) revokeToken(c *call) *reply {
	if c.who.token.user != nil {
		return problem(http.StatusForbidden, "Resource not accessible by personal access token")
	}
	delete(s.world.tokens, c.who.token.value)
	return noContent()
}

func (s *Server) listInstallationRepos(c *call) *reply {
	if c.who.token.user != nil {
		return problem(http.StatusForbidden, "You must authenticate with an installation access token in order to list repositories for an installation.")
	}
	visible := slices.DeleteFunc(s.world.reposOf(c.who.token.installation), func(r *repository) bool { return !c.sees(r) })
	return page(s, c, visible, s.renderRepo, func(list []obj, total int) any {
		return obj{"total_count": total, "repository_selection": "selected", "repositories": list}
	})
}

func (s *Server) getSelf(c *call) *reply {
	if c.who.token.user == nil {
		return problem(http.StatusForbidden, "Resource not accessible by integration")
	}
	return ok(s.renderProfile(c.who.token.user))
}

func (s *Server) getUser(c *call) *reply {
	a, err := s.world.account(c.params["login"])
	if err != nil {
		return notFound()
	}
	return ok(s.renderProfile(a))
}

// getPermission answers with the four old levels in "permission" and the exact
// one in "role_name" (REST API, get repository permissions for a user). People
// without a role get "none", or "read" where the repository is public. GitHub
// does not document what it answers for Apps; here they are 404, so a caller
// that takes any answer but a 200 for "no" is on the safe side.
func (s *Server) getPermission(c *call) *reply {
	if !c.has("contents:write") && c.who.token.user != nil {
		return problem(http.StatusForbidden, "Must have push access to view collaborator permission.")
	}
	a, err := s.world.account(c.params["login"])
	if err != nil || a.kind != "User" {
		return problem(http.StatusNotFound, c.params["login"]+" is not a user")
	}
	role := c.repo.role(a)
	permission := role
	switch role {
	case "maintain":
		permission = "write"
	case "triage":
		permission = "read"
	}
	user := s.renderUser(a)
	user["role_name"] = role
	has := rank(role)
	user["permissions"] = obj{"pull": has >= 1, "triage": has >= 2, "push": has >= 3, "maintain": has >= 4, "admin": has >= 5}
	return ok(obj{"permission": permission, "role_name": role, "user": user})
}
