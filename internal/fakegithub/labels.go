package fakegithub

import (
	"net/http"
	"slices"
	"strings"
)

func (s *Server) labelAction(r *repository, t *thread, action, name string, by *account) {
	t.updated = s.now()
	s.emitThread(r, t, action, by, obj{"label": s.renderLabel(r, name)})
}

// setLabels brings the labels to exactly this list, one event each.
func (s *Server) setLabels(r *repository, t *thread, names []string, by *account) {
	for _, name := range slices.Clone(t.labels) {
		if !slices.Contains(names, name) {
			s.dropLabel(r, t, name, by)
		}
	}
	for _, name := range names {
		s.addLabel(r, t, name, by)
	}
}

func (s *Server) addLabel(r *repository, t *thread, name string, by *account) {
	if !slices.Contains(t.labels, name) {
		t.labels = append(t.labels, name)
		s.labelAction(r, t, "labeled", name, by)
	}
}

func (s *Server) dropLabel(r *repository, t *thread, name string, by *account) {
	t.labels = slices.DeleteFunc(t.labels, func(l string) bool { return l == name })
	s.labelAction(r, t, "unlabeled", name, by)
}

func (s *Server) renderLabels(r *repository, t *thread) []obj {
	list := []obj{}
	for _, name := range t.labels {
		list = append(list, s.renderLabel(r, name))
	}
	return list
}

func (s *Server) listLabels(c *call) *reply {
	if t := c.thread(); t != nil {
		return ok(s.renderLabels(c.repo, t))
	}
	return notFound()
}

// addLabels takes {"labels": [...]} or a plain array, as GitHub does.
func (s *Server) addLabels(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	if refused := c.mayLabel(t); refused != nil {
		return refused
	}
	var want struct {
		Labels []string `json:"labels"`
	}
	target := any(&want)
	if strings.HasPrefix(strings.TrimSpace(string(c.body)), "[") {
		target = &want.Labels
	}
	if bad := c.decode(target); bad != nil {
		return bad
	}
	if len(want.Labels) == 0 {
		return invalid(`"labels" wasn't supplied.`)
	}
	for _, name := range want.Labels {
		s.addLabel(c.repo, t, name, c.who.account())
	}
	return ok(s.renderLabels(c.repo, t))
}

func (s *Server) removeLabel(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	if refused := c.mayLabel(t); refused != nil {
		return refused
	}
	if !slices.Contains(t.labels, c.params["label"]) {
		return problem(http.StatusNotFound, "Label does not exist")
	}
	s.dropLabel(c.repo, t, c.params["label"], c.who.account())
	return ok(s.renderLabels(c.repo, t))
}
