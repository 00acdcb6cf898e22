package solver_test

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// The script's users: ann may write, eve may only read.
var (
	ann  = feedback.Actor{ID: 31, Login: "ann", Type: "User"}
	eve  = feedback.Actor{ID: 32, Login: "eve", Type: "User"}
	self = feedback.Actor{ID: botID, Login: "pawl[bot]", Type: "Bot"}
)

// happens appends a random event to a thread as the handlers would.
func (w *world) happens(r *rand.Rand, th *issue) {
	s := w.fold(th.ID)
	th.events++
	comment := feedback.Remark{Source: policy.FromComment, Actor: ann, Author: ann}
	say := func(text string) { comment.Text = text; w.remark(r, th, s, comment) }
	if !s.Tracked() {
		say("/pawl solve mend it")
		return
	}
	switch n := r.IntN(32); n {
	case 0, 1, 2, 3, 4:
		say(fmt.Sprintf("/pawl solve also %d", th.events))
	case 5, 6, 7:
		say("/pawl retry")
	case 8, 9:
		say("/pawl resume")
	case 10:
		say("/pawl escalate")
	case 11, 12, 13:
		say("/pawl stop")
	case 14:
		say("/pawl use " + w.config.Backends[r.IntN(len(w.config.Backends))].Name)
	case 15:
		say([]string{"/pawl status", "/pawl why"}[r.IntN(2)])
	case 16, 17:
		comment.Actor, comment.Author, comment.App = self, self, appID
		say("/pawl solve this is mine")
	case 18:
		say("I found <!-- pawl:status --> and /pawl solve")
	case 19:
		comment.Actor, comment.Author = eve, eve
		say("/pawl solve for me")
	case 20, 21:
		was := th.body
		if th.body = fmt.Sprintf("It is broken in %d places.", th.events); r.IntN(3) == 0 {
			th.body = "It is broken."
		}
		w.remark(r, th, s, feedback.Remark{Source: policy.FromDescription, Edited: true, Actor: ann, Author: ann, Text: th.body, Was: was, HasWas: true})
	case 22, 23, 24:
		name := fmt.Sprint("ci", r.IntN(2))
		w.github.fails(s.Head, name)
		w.remark(r, th, s, feedback.Remark{Source: policy.FromCheckRun, Actor: self, App: 99, Name: name, State: "failure", SHA: s.Head})
	default:
		w.changes(r, th, s, n)
	}
}

// changes draws a change of the thread itself.
func (w *world) changes(r *rand.Rand, th *issue, s thread.State, n int) {
	c := thread.Change{By: ann.Login}
	w.github.mu.Lock()
	pull := w.github.pull(s.Pull)
	switch {
	case n <= 26 && pull != nil && pull.open:
		c.What, c.Number, pull.open = []string{"pull_merged", "pull_closed"}[r.IntN(2)], s.Pull, false
	case n <= 26:
		c.What = "edited"
	case n == 27:
		c.What = "closed"
	case n <= 29:
		c.What = "reopened"
	case n == 30:
		c.What = "uninstalled"
	default:
		c.What = "installed"
	}
	w.github.mu.Unlock()
	w.append(r, th, true, thread.KindThread, c)
}

// remark judges a remark as the handlers do.
func (w *world) remark(r *rand.Rand, th *issue, s thread.State, m feedback.Remark) {
	scene := feedback.Scene{Self: feedback.Self{AppID: appID, BotID: botID, Slug: "pawl"}, Label: thread.Label, Tracked: s.Tracked(), Working: s.Open(),
		Marked: m.Source != policy.FromDescription && thread.Marked(m.Text), OwnPull: s.Pull != 0, Head: s.Head, Known: s.Known,
		Permission: map[string]string{"ann": "write", "eve": "read"}[m.Actor.Login],
		Looked:     []feedback.Need{feedback.AgentTexts, feedback.Closing}}
	j := feedback.Judge(m, scene)
	if j.Accepted && (m.Actor.ID == botID && m.Source != policy.FromCheckRun || m.Actor == eve) {
		w.fail("a remark of %s was taken for work: %s", m.Actor.Login, m.Text)
	}
	f := thread.Feedback{Source: m.Source, By: m.Actor, Reason: j.Reason, Own: j.Own, Number: th.Number, Command: j.Command.Name, Text: j.Text, Raw: m.Text,
		Description: j.Description, SHA: m.SHA, MadeAt: time.Now().Add(-time.Duration(r.Int64N(int64(3 * time.Second)))).Truncate(time.Second),
		Snapshot: &thread.Details{Installation: 5, RepoID: 1, Title: "Broken", Body: th.body, Author: "ann", DefaultBranch: "main", URL: "http://github.test/i"}}
	if m.Source == policy.FromComment {
		f.Target = thread.Target{Kind: "issue_comment", ID: int64(10000*th.Number + th.events)}
	}
	if m.Source == policy.FromDescription {
		f.Baseline = feedback.Content(m.Was)
	}
	if m.Source == policy.FromCheckRun {
		f.Check, f.Conclusion = m.Name, m.State
	}
	onPull := s.Snapshot.Pull
	e := handlers.EntryOf(s, onPull, f, j, handlers.Backends{
		Known:     func(string) bool { return true }, // the handlers refuse the others
		Escalates: func() bool { return true },
	})
	w.append(r, th, j.Accepted || s.TakenBack(f), e.Kind, e.Data)
}

// append stores an event, sometimes twice, like a repeated delivery.
func (w *world) append(r *rand.Rand, th *issue, wake bool, kind thread.Kind, data any) {
	e := thread.NewEvent{Key: fmt.Sprint("delivery:", th.events), Kind: kind, At: time.Now(), Data: data}
	what := ""
	switch d := data.(type) {
	case thread.Feedback:
		what = d.Raw
	case thread.Change:
		what = d.What
	}
	w.note("%s: %s %q", th.ID, kind, what)
	for range 1 + r.IntN(8)/7 {
		if _, err := w.store.Append(w.t.Context(), th.ID, wake, e); err != nil {
			w.fail("append: %v", err)
		}
	}
	w.books.mu.Lock()
	defer w.books.mu.Unlock()
	if c, ok := data.(thread.Change); ok && c.What != "edited" {
		w.books.changed[th.ID] = time.Now()
	}
}

// gap draws the time between two events.
func gap(r *rand.Rand) time.Duration {
	scale := []time.Duration{time.Millisecond, time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, 3 * time.Hour, 30 * time.Hour}[r.IntN(7)]
	return time.Duration(r.Int64N(int64(scale))) + 1
}
