package fakegithub

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// maxText is GitHub's limit on bodies and comments in characters.
const maxText = 65536

// maxTitle is GitHub's limit on titles in characters.
const maxTitle = 256

// listIssues sorts by creation or last change, newest first by default ("List repository issues").
func (w issues) listIssues(c *call) *reply {
	state, at := c.query("state", "open"), func(t *thread) time.Time { return t.created }
	if c.query("sort", "created") == "updated" {
		at = func(t *thread) time.Time { return t.updated }
	}
	since, _ := time.Parse(time.RFC3339, c.query("since", "")) // an invalid time counts as missing
	var list []*thread
	for _, t := range c.repo.threads {
		if !t.updated.Truncate(time.Second).Before(since) && (state == "all" || t.state == state) && t.labelled(c.query("labels", "")) {
			list = append(list, t)
		}
	}
	slices.SortStableFunc(list, func(a, b *thread) int { return at(a).Compare(at(b)) })
	if c.query("direction", "desc") == "desc" {
		slices.Reverse(list)
	}
	return page(c, list, func(t *thread) obj { return w.renderIssue(c.repo, t) }, array)
}

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

func (w issues) getIssue(c *call, t *thread) *reply { return ok(w.renderIssue(c.repo, t)) }

// createIssue opens an issue with labels, and sends events like OpenIssue.
func (w issues) createIssue(c *call) *reply {
	var want struct {
		Title  *string  `json:"title"`
		Body   string   `json:"body"`
		Labels []string `json:"labels"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if want.Title == nil {
		return invalid(`"title" wasn't supplied.`)
	}
	if bad := checkThread("Issue", want.Title, &want.Body); bad != nil {
		return bad
	}
	return created(w.renderIssue(c.repo, w.addIssue(c.repo, c.who.account(), c.who.via(), *want.Title, want.Body, want.Labels)))
}

// updateIssue changes only the title and the body.
func (w issues) updateIssue(c *call, t *thread) *reply {
	var want struct {
		Title *string `json:"title"`
		Body  *string `json:"body"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if refused := c.mayChange(t.author); refused != nil {
		return refused
	}
	if bad := checkThread("Issue", want.Title, want.Body); bad != nil {
		return bad
	}
	w.editTexts(c.repo, t, want.Title, want.Body, c.who.account(), false)
	return ok(w.renderIssue(c.repo, t))
}

// editTexts changes title and body and sends an event with the old texts. Without a change it sends nothing, unless
// always is set (a re-save).
func (w issues) editTexts(r *repository, t *thread, title, body *string, by *account, always bool) {
	changes := obj{}
	if title != nil && *title != t.title {
		changes["title"] = obj{"from": t.title}
		t.events = append(t.events, issueEvent{id: w.newID(), event: "renamed", actor: by, at: w.now(), from: t.title, to: *title})
		t.title = *title
	}
	if body != nil && (*body != t.body || always) {
		changes["body"] = obj{"from": t.body}
		t.body, t.edited = *body, w.now()
	}
	if len(changes) == 0 {
		return
	}
	t.updated = w.now()
	w.emitThread(r, t, "edited", by, obj{"changes": changes})
}

// OpenIssue opens an issue and returns its number. Like GitHub, it also sends a labeled event for each label.
func (w issues) OpenIssue(repo, as, title, body string, labels ...string) (int, error) {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return 0, err
	}
	by, err := w.account(as)
	if err != nil {
		return 0, err
	}
	return w.addIssue(r, by, nil, title, body, labels).number, nil
}

func (w issues) addIssue(r *repository, by *account, via *app, title, body string, labels []string) *thread {
	t := w.addThread(r, by, via, title, body)
	t.labels = labels
	w.emitThread(r, t, "opened", by, nil)
	for _, name := range labels {
		w.labelAction(r, t, "labeled", name, by)
	}
	return t
}

// EditBody changes the description. For an unchanged text it sends an edited event with equal texts, like a re-save.
func (w issues) EditBody(repo string, number int, as, body string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		w.editTexts(r, t, nil, &body, by, true)
		return nil
	})
}

func (w issues) EditTitle(repo string, number int, as, title string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		w.editTexts(r, t, &title, nil, by, false)
		return nil
	})
}

// TouchIssue changes updated_at only: the user assigns or unassigns themselves.
func (w issues) TouchIssue(repo string, number int, as string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		t.updated = w.now()
		action := "assigned"
		if slices.Contains(t.assignees, by) {
			action = "unassigned"
			t.assignees = slices.DeleteFunc(t.assignees, func(a *account) bool { return a == by })
		} else {
			t.assignees = append(t.assignees, by)
		}
		w.emitThread(r, t, action, by, obj{"assignee": w.renderUser(by)})
		return nil
	})
}

// CloseIssue closes an issue or, without merging, a pull request.
func (w issues) CloseIssue(repo string, number int, as string) error {
	return w.turn(repo, number, as, "closed")
}

func (w issues) ReopenIssue(repo string, number int, as string) error {
	return w.turn(repo, number, as, "open")
}

func (w issues) turn(repo string, number int, as, state string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		switch {
		case t.state == state:
			return fmt.Errorf("%s#%d is %s already", repo, number, state)
		case t.pull != nil && !t.pull.mergedAt.IsZero():
			return errors.New("a merged pull request stays closed")
		case t.pull != nil && state == "open" && r.branches[t.pull.headRef] == "":
			return fmt.Errorf("reopen %s#%d: the %s branch has been deleted", repo, number, t.pull.headRef)
		}
		w.setState(r, t, state, "completed", by)
		return nil
	})
}

func (w comments) listComments(c *call, t *thread) *reply {
	list := t.comments
	if since, err := time.Parse(time.RFC3339, c.query("since", "")); err == nil {
		list = slices.DeleteFunc(slices.Clone(list), func(m *comment) bool { return m.updated.Before(since) })
	}
	return page(c, list, func(m *comment) obj { return w.renderComment(c.repo, t, m) }, array)
}

// text reads and validates a comment's body.
func (c *call) text() (string, *reply) {
	var want struct {
		Body *string `json:"body"`
	}
	if bad := c.decode(&want); bad != nil {
		return "", bad
	}
	switch {
	case want.Body == nil:
		return "", invalid(`"body" wasn't supplied.`)
	case strings.TrimSpace(*want.Body) == "":
		return "", failed("IssueComment", "data", "unprocessable", "Body cannot be blank")
	case utf8.RuneCountInString(*want.Body) > maxText:
		return "", failed("IssueComment", "body", "custom", "body is too long (maximum is 65536 characters)")
	}
	return *want.Body, nil
}

func (w comments) createComment(c *call, t *thread) *reply {
	body, bad := c.text()
	if bad != nil {
		return bad
	}
	return created(w.renderComment(c.repo, t, w.addComment(c.repo, t, c.who.account(), c.who.via(), body)))
}

func (w comments) addComment(r *repository, t *thread, by *account, via *app, body string) *comment {
	now := w.now()
	m := &comment{id: w.newID(), author: by, via: via, body: body, created: now, updated: now}
	t.comments = append(t.comments, m)
	t.updated = m.created
	w.emitComment(r, t, m, "created", by, nil)
	return m
}

func (r *repository) comment(id int64) (*thread, *comment) {
	for _, t := range r.threads {
		for _, m := range t.comments {
			if m.id == id {
				return t, m
			}
		}
	}
	return nil, nil
}

func (w comments) updateComment(c *call, t *thread, m *comment) *reply {
	if refused := c.mayChange(m.author); refused != nil {
		return refused
	}
	body, bad := c.text()
	if bad != nil {
		return bad
	}
	if body != m.body {
		w.editComment(c.repo, t, m, c.who.account(), body)
	}
	return ok(w.renderComment(c.repo, t, m))
}

func (w comments) editComment(r *repository, t *thread, m *comment, by *account, body string) {
	from := m.body
	m.body, m.updated, m.editor = body, w.now(), by
	w.emitComment(r, t, m, "edited", by, obj{"changes": obj{"body": obj{"from": from}}})
}

// Comment writes a comment and returns its id.
func (w comments) Comment(repo string, number int, as, body string) (id int64, err error) {
	err = w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		id = w.addComment(r, t, by, nil, body).id
		return nil
	})
	return id, err
}

func (w comments) EditComment(repo string, id int64, as, body string) error {
	return w.withComment(repo, id, as, func(r *repository, t *thread, m *comment, by *account) { w.editComment(r, t, m, by, body) })
}

func (w comments) DeleteComment(repo string, id int64, as string) error {
	return w.withComment(repo, id, as, func(r *repository, t *thread, m *comment, by *account) {
		t.comments = slices.DeleteFunc(t.comments, func(c *comment) bool { return c == m })
		w.emitComment(r, t, m, "deleted", by, nil)
	})
}

func (w comments) withComment(repo string, id int64, as string, do func(*repository, *thread, *comment, *account)) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	t, m := r.comment(id)
	if m == nil {
		return fmt.Errorf("no comment %d in %s", id, repo)
	}
	by, err := w.account(as)
	if err == nil {
		do(r, t, m, by)
	}
	return err
}

func (w comments) reactToIssue(c *call, t *thread) *reply { return w.react(c, &t.reactions) }

func (w comments) reactToComment(c *call, _ *thread, m *comment) *reply {
	return w.react(c, &m.reactions)
}

func (w comments) listReactions(c *call, _ *thread, m *comment) *reply {
	return page(c, m.reactions, func(r reaction) obj { return w.renderReaction(r) }, array)
}

func (w comments) ReactToComment(repo string, id int64, as, content string) error {
	return w.withComment(repo, id, as, func(_ *repository, _ *thread, m *comment, by *account) {
		m.reactions = append(m.reactions, reaction{id: w.newID(), user: by, content: content, created: w.now()})
	})
}

func (w comments) reactToReviewComment(c *call) *reply {
	for _, t := range c.repo.threads {
		if t.pull == nil {
			continue
		}
		for _, m := range t.pull.comments {
			if m.id == c.id() {
				return w.react(c, &m.reactions)
			}
		}
	}
	return notFound()
}

// react adds a reaction: 201 for a new one, else 200. GitHub sends no webhook for reactions.
func (w comments) react(c *call, list *[]reaction) *reply {
	var want struct {
		Content string `json:"content"`
	}
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if !slices.Contains(strings.Fields(reactionKinds), want.Content) {
		return failed("Reaction", "content", "invalid", "")
	}
	made, isNew := w.world.react(list, c.who.account(), want.Content)
	if !isNew {
		return ok(w.renderReaction(made))
	}
	return created(w.renderReaction(made))
}

func (w *world) react(list *[]reaction, user *account, content string) (_ reaction, isNew bool) {
	for _, known := range *list {
		if known.user.id == user.id && known.content == content {
			return known, false
		}
	}
	fresh := reaction{id: w.newID(), user: user, content: content, created: w.now()}
	*list = append(*list, fresh)
	return fresh, true
}
