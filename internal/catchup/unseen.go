package catchup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// remote is an issue or pull request at GitHub.
type remote struct {
	forge.Issue
	pull     forge.Pull // set for a pull request
	comments []forge.Comment
	reviews  []forge.Review
	remarks  []forge.ReviewComment
}

// local is GitHub's state as a thread's log knows it.
type local struct {
	began  time.Time                  // when a permitted user first asked; older texts do not count
	texts  map[string]thread.Feedback // newest versions by identity
	body   string                     // description in the last snapshot
	bodied bool                       // a snapshot exists
	closed map[int]bool               // by number, whether the last change closed it
}

func readLog(events []thread.Event, s thread.State) local {
	l := local{texts: handlers.Texts(events), closed: map[int]bool{}}
	asked := s.Controls
	if len(s.Feedback) > 0 && !s.Feedback[0].Standing {
		asked = []thread.Feedback{s.Feedback[0].Feedback}
	}
	if len(asked) > 0 {
		first := asked[0]
		l.began = first.MadeAt
		if l.began.IsZero() { // a button has no comment
			l.began = first.At
		}
	}
	for _, e := range events {
		l.take(e)
	}
	return l
}

// take applies an event's state change and its snapshot of the description.
func (l *local) take(e thread.Event) {
	if e.Kind == thread.KindThread {
		var c thread.Change
		if json.Unmarshal(e.Data, &c) == nil {
			l.takeState(c)
			l.takeBody(c.Snapshot)
		}
		return
	}
	if list := handlers.Remarks([]thread.Event{e}); len(list) > 0 {
		l.takeBody(list[0].Snapshot)
	}
}

func (l *local) takeState(c thread.Change) {
	switch c.What {
	case "closed", "merged", "pull_closed", "pull_merged":
		l.closed[c.Number] = true
	case "reopened", "pull_reopened":
		l.closed[c.Number] = false
	}
}

func (l *local) takeBody(n *thread.Details) {
	if n != nil && n.Title != "" {
		l.body, l.bodied = n.Body, true
	}
}

// version relates GitHub's version of a text to the log.
type version int

const (
	known   version = iota // in the log, or older than Pawl's work
	written                // new, unedited
	edited                 // new or changed, after an edit
)

func (l local) versionOf(kind string, c forge.Comment) version {
	if last, logged := l.texts[fmt.Sprintf("%s:%d", kind, c.ID)]; logged {
		return versionAfter(last, c)
	}
	switch {
	case !c.Created.After(l.began):
		return known
	case c.Updated.Equal(c.Created):
		return written
	}
	return edited
}

func versionAfter(last thread.Feedback, c forge.Comment) version {
	if !c.Updated.After(last.MadeAt) || handlers.Same(last, c.Body) {
		return known
	}
	return edited
}

// comparison compares an issue or pull request at GitHub with its thread's log.
type comparison struct {
	thread thread.ID
	state  thread.State
	remote remote
	local  local
	app    forge.App
	about  handlers.Activity // common part of the activities
}

func (c comparison) unseen() []handlers.Activity {
	var activities []handlers.Activity
	if c.remote.Number == c.thread.Number {
		activities = append(activities, c.description()...)
	}
	for _, one := range c.remote.comments {
		activities = append(activities, c.text(one, policy.FromComment, "issue_comment")...)
	}
	for _, r := range c.remote.reviews {
		activities = append(activities, c.review(r)...)
	}
	for _, r := range c.remote.remarks {
		for _, it := range c.text(r.Comment, policy.FromReviewComment, "review_comment") {
			if remark, is := it.What.(handlers.Remarked); is {
				remark.Remark.SHA, remark.Remark.Name = r.SHA, fmt.Sprintf("%s:%d", r.Path, r.Line)
			}
			activities = append(activities, it)
		}
	}
	return append(activities, c.stateChange()...)
}

// ours reports whether Pawl wrote a text, by its App or author.
func (c comparison) ours(app int64, author feedback.Actor) bool {
	if app == c.app.ID {
		return true
	}
	return c.app.BotID != 0 && author.ID == c.app.BotID
}

// text returns a new or edited comment. Only an unedited comment counts as its author's: the REST API does not name
// editors.
func (c comparison) text(one forge.Comment, source policy.Source, kind string) []handlers.Activity {
	if c.ours(one.App.ID, one.Author) {
		return nil
	}
	r := feedback.Remark{Source: source, Actor: one.Author, Author: one.Author, App: one.App.ID, Text: one.Body}
	it := c.about
	it.Target = thread.Target{Kind: kind, ID: one.ID}
	it.URL = one.HTMLURL
	it.MadeAt = one.Updated
	anonymous := false
	switch c.local.versionOf(kind, one) {
	case known:
		return nil
	case written:
		it.Key = handlers.MadeKey(kind, one.ID)
	case edited:
		r.Edited, r.Actor, anonymous = true, somebody(), true
		it.Key = fmt.Sprintf("found:edited:%s:%d:%d:%s", kind, one.ID, one.Updated.Unix(), handlers.Digest(one.Body))
	}
	it.What = handlers.Remarked{Remark: &r, Anonymous: anonymous}
	return []handlers.Activity{it}
}

// somebody stands for a user whom GitHub's REST API does not name.
func somebody() feedback.Actor { return feedback.Actor{Login: "somebody"} }

// review returns a new review as its author's activity. GitHub does not report edits of reviews.
func (c comparison) review(r forge.Review) []handlers.Activity {
	switch strings.ToLower(r.State) {
	case "pending", "dismissed":
		return nil
	}
	if _, logged := c.local.texts[fmt.Sprintf("review:%d", r.ID)]; logged {
		return nil
	}
	if !r.Submitted.After(c.local.began) {
		return nil
	}
	if c.ours(r.App.ID, r.Author) {
		return nil
	}
	return handlers.Reviewed(c.about, r, &feedback.Remark{
		Source: policy.FromReview,
		Actor:  r.Author,
		Author: r.Author,
		App:    r.App.ID,
		Text:   r.Body,
	})
}

// description returns an edit of the thread's description since the log's last snapshot. Edits of Pawl's own pull
// request for an issue have no snapshot and are left to webhooks.
func (c comparison) description() []handlers.Activity {
	now := c.remote
	if !c.local.bodied {
		return nil
	}
	if _, changed := feedback.DescriptionDiff(c.local.body, now.Body); !changed {
		return nil
	}
	last, logged := c.local.texts[fmt.Sprintf("description:%d", now.Number)]
	if logged && handlers.Same(last, now.Body) {
		return nil
	}
	it := c.about
	it.Target = thread.Target{Kind: "issue", ID: int64(now.Number)}
	it.MadeAt = now.Updated
	// The key has no time, because any change to the thread changes Updated.
	it.Key = fmt.Sprintf("found:description:%d:%s", now.Number, handlers.Digest(feedback.Content(now.Body)))
	it.What = handlers.Remarked{Anonymous: true, Remark: &feedback.Remark{
		Source: policy.FromDescription,
		Edited: true,
		Actor:  somebody(),
		Author: now.Author,
		Text:   now.Body,
		Was:    c.local.body,
		HasWas: true,
	}}
	return []handlers.Activity{it}
}

// stateChange returns the closing, reopening or new head of an issue or pull request.
func (c comparison) stateChange() []handlers.Activity {
	now := c.remote
	number := 0 // the log uses 0 for changes to the thread itself
	if now.Number != c.thread.Number {
		number = now.Number
	}
	closed := now.State == "closed"
	if closed == c.local.closed[number] {
		return c.newHead()
	}
	if !closed {
		return c.change("reopened", "somebody", "", fmt.Sprintf("found:reopened:%d:%d", now.Number, now.Updated.Unix()))
	}
	what := "closed"
	if now.pull.Merged() {
		what = "merged"
	}
	key := handlers.ClosedKey(now.Number, now.Closed, what == "merged")
	return c.change(what, cmp.Or(now.ClosedBy.Login, "somebody"), "", key)
}

func (c comparison) newHead() []handlers.Activity {
	now := c.remote
	if now.State == "closed" || !now.IsPull() {
		return nil
	}
	head := now.pull.Head.SHA
	logged := c.state.Snapshot.HeadSHA
	if logged == "" || logged == head {
		return nil
	}
	return c.change("head_moved", "somebody", head, fmt.Sprintf("found:head:%d:%s", now.Number, head))
}

func (c comparison) change(what, by, detail, key string) []handlers.Activity {
	it := c.about
	it.Key = key
	it.What = handlers.Changed{Change: &thread.Change{What: what, By: by, Detail: detail, MadeAt: c.remote.Closed}}
	return []handlers.Activity{it}
}
