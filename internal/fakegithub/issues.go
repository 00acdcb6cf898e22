package fakegithub

import (
	"cmp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxText is GitHub's limit on bodies and comments, in characters.
const maxText = 65536

// maxTitle is GitHub's limit on titles, in characters.
const maxTitle = 256

func (s *Server) listIssues(c *call) *reply {
	state, labels := c.query("state", "open"), c.query("labels", "")
	since, _ := time.Parse(time.RFC3339, c.query("since", "")) // what is no time is as if it were not there
	var list []*thread
	for _, t := range c.repo.threads {
		hasAll := !t.updated.Truncate(time.Second).Before(since)
		for name := range strings.SplitSeq(labels, ",") {
			hasAll = hasAll && (name == "" || slices.Contains(t.labels, name))
		}
		if hasAll && (state == "all" || t.state == state) {
			list = append(list, t)
		}
	}
	c.sort(list)
	return page(s, c, list, func(t *thread) obj { return s.renderIssue(c.repo, t) }, array)
}

// sort puts threads, which come by number, in the order that sort and direction
// ask for: the newest first by default ("List repository issues").
func (c *call) sort(list []*thread) {
	slices.SortStableFunc(list, func(a, b *thread) int {
		switch c.query("sort", "created") {
		case "updated":
			return a.updated.Compare(b.updated)
		case "comments":
			return cmp.Compare(len(a.comments), len(b.comments))
		}
		return a.created.Compare(b.created)
	})
	if c.query("direction", "desc") == "desc" {
		slices.Reverse(list)
	}
}

func (s *Server) createIssue(c *call) *reply {
	var want struct {
		Title  string   `json:"title"`
		Body   string   `json:"body"`
		Labels []string `json:"labels"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if bad := checkThread("Issue", &want.Title, &want.Body); bad != nil {
		return bad
	}
	if !c.triages() {
		want.Labels = nil
	}
	rep := created(s.renderIssue(c.repo, s.openIssue(c.repo, c.who.account(), c.who.via(), want.Title, want.Body, want.Labels)))
	rep.header.Set("Location", rep.body.(obj)["url"].(string))
	return rep
}

// openIssue sends the opened event and, as GitHub does, one labeled event for
// each label that the issue is opened with.
func (s *Server) openIssue(r *repository, by *account, via *app, title, body string, labels []string) *thread {
	t := s.addThread(r, by, via, title, body)
	t.labels = labels
	s.emitThread(r, t, "opened", by, nil)
	for _, name := range labels {
		s.labelAction(r, t, "labeled", name, by)
	}
	return t
}

// checkThread validates a title and a body where given.
func checkThread(resource string, title, body *string) *reply {
	switch {
	case title != nil && strings.TrimSpace(*title) == "":
		return failed(resource, "title", "missing_field", "")
	case title != nil && utf8.RuneCountInString(*title) > maxTitle:
		return failed(resource, "title", "custom", "title is too long (maximum is 256 characters)")
	case body != nil && utf8.RuneCountInString(*body) > maxText:
		return failed(resource, "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	return nil
}

// addThread creates an issue; a pull request is one with pull set.
func (s *Server) addThread(r *repository, author *account, via *app, title, body string) *thread {
	now := s.now()
	t := &thread{id: s.world.newID(), number: len(r.threads) + 1, title: title, body: body, author: author, via: via,
		state: "open", created: now, updated: now}
	r.threads = append(r.threads, t)
	return t
}

func (s *Server) getIssue(c *call) *reply {
	if t := c.thread(); t != nil {
		return ok(s.renderIssue(c.repo, t))
	}
	return notFound()
}

// threadEdit is what PATCH of an issue or a pull request may ask for.
type threadEdit struct {
	Title       *string   `json:"title"`
	Body        *string   `json:"body"`
	State       *string   `json:"state"`
	StateReason *string   `json:"state_reason"`
	Labels      *[]string `json:"labels"`
}

func (s *Server) updateIssue(c *call) *reply {
	t := c.thread()
	if t == nil {
		return notFound()
	}
	if refused := s.editThread(c, t, "Issue"); refused != nil {
		return refused
	}
	return ok(s.renderIssue(c.repo, t))
}

func (s *Server) editThread(c *call, t *thread, resource string) *reply {
	var want threadEdit
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if refused := c.mayTouch(t); refused != nil {
		return refused
	}
	if refused := c.mayChange(t.author); refused != nil {
		return refused
	}
	if bad := checkThread(resource, want.Title, want.Body); bad != nil {
		return bad
	}
	if want.State != nil && *want.State != "open" && *want.State != "closed" {
		return failed(resource, "state", "invalid", "")
	}
	if want.State != nil && *want.State == "open" && t.pull != nil && t.state == "closed" {
		if why := t.pull.headGone(); why != "" {
			return failed("PullRequest", "state", "custom", "state cannot be changed. "+why)
		}
	}
	by := c.who.account()
	s.editTexts(c.repo, t, want.Title, want.Body, by, false)
	if want.Labels != nil && c.triages() {
		s.setLabels(c.repo, t, *want.Labels, by)
	}
	if want.State != nil && *want.State != t.state {
		reason := "completed"
		if want.StateReason != nil {
			reason = *want.StateReason
		}
		s.setState(c.repo, t, *want.State, reason, by)
	}
	return nil
}

// editTexts changes title and body and tells what they were. Without a change
// nothing is sent, unless always asks for it (a re-save in the browser).
func (s *Server) editTexts(r *repository, t *thread, title, body *string, by *account, always bool) {
	changes := obj{}
	if title != nil && *title != t.title {
		changes["title"] = obj{"from": t.title}
		t.title = *title
	}
	if body != nil && (*body != t.body || always) {
		changes["body"] = obj{"from": t.body}
		t.body = *body
	}
	if len(changes) == 0 {
		return
	}
	t.updated = s.now()
	s.emitThread(r, t, "edited", by, obj{"changes": changes})
}

// setState closes or reopens.
func (s *Server) setState(r *repository, t *thread, state, reason string, by *account) {
	t.state, t.updated, t.closed, t.reason = state, s.now(), s.now(), ""
	action := "closed"
	if state == "open" {
		t.closed, action = time.Time{}, "reopened"
	}
	if t.pull == nil {
		t.reason = reason
		if state == "open" {
			t.reason = "reopened"
		}
	}
	s.emitThread(r, t, action, by, nil)
}
