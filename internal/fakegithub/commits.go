package fakegithub

import (
	"net/http"
	"slices"
	"strings"
)

// listPullsOfCommit lists "the merged pull request that introduced the commit to
// the repository. If the commit is not present in the default branch, it will
// only return open pull requests associated with the commit" (REST API, list
// pull requests associated with a commit).
func (s *Server) listPullsOfCommit(c *call) *reply {
	sha, found := s.resolve(c, c.params["ref"])
	if !found {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.params["ref"])
	}
	var list []*thread
	for _, t := range c.repo.threads {
		if t.pull == nil || t.state == "closed" && t.pull.mergedAt.IsZero() {
			continue
		}
		out, err := c.repo.git.run(c.context(), nil, "rev-list", t.pull.baseSHA+".."+t.pull.headSHA)
		if t.pull.mergeSHA == sha || err == nil && slices.Contains(strings.Fields(string(out)), sha) {
			list = append(list, t)
		}
	}
	return page(s, c, list, func(t *thread) obj { return s.renderPullSimple(c.repo, t) }, array)
}
