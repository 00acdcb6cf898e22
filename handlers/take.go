package handlers

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// Decide handles one activity and appends its event. guid is its delivery, Reconciled, or another source. The
// note is a short result.
func (h *Handlers) Decide(ctx context.Context, it Activity, guid string) (string, error) {
	if it.What == nil {
		return "", nil
	}
	note, err := it.What.decide(ctx, h, it, guid)
	if errors.Is(err, thread.ErrDamaged) {
		return "left out: " + err.Error(), nil // the thread's step reports the damage
	}
	return note, err
}

func (r Remarked) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	t, state, err := h.locate(ctx, &it)
	if err != nil {
		return "", err
	}
	switch {
	case t.Number <= 0:
		return noThread, nil
	case r.suite && !state.Tracked():
		return untracked(t), nil
	case guid != Reconciled && it.overtaken(state, r.Remark):
		return "the reconciliation added it already", nil
	case state.Outdated(it.feedback(r.Remark)):
		return "this or a newer version was accepted before", nil
	case r.Anonymous:
		return h.unattributed(ctx, t, it, r.Remark)
	}
	return h.remark(ctx, t, state, it, r.Remark, guid)
}

// decide appends a change if Pawl has worked on the thread.
func (c Changed) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	it, c, err := h.byCommit(ctx, it, c)
	if err != nil {
		return "", err
	}
	t, state, err := h.locate(ctx, &it)
	if err != nil {
		return "", err
	}
	if t.Number <= 0 {
		return noThread, nil
	}
	if !state.Worked() {
		return untracked(t), nil
	}
	return h.change(ctx, t, state, it, c, guid)
}

const noThread = "it belongs to no thread"

func untracked(t thread.ID) string { return "Pawl does not work on " + t.String() }

// locate finds an activity's thread and reads its log. Number 0 means none.
func (h *Handlers) locate(ctx context.Context, it *Activity) (thread.ID, thread.State, error) {
	t, err := h.threadOf(ctx, it)
	if err != nil || t.Number <= 0 {
		return t, thread.State{}, err
	}
	_, state, err := thread.Load(ctx, h.Store, t)
	if errors.Is(err, thread.ErrDamaged) {
		if _, failed := h.Store.Append(ctx, t, true); failed != nil {
			return t, state, failed
		}
	}
	if err != nil {
		return t, state, err
	}
	if n := &it.Snapshot; it.elsewhere(t) {
		// The title and description of an issue's pull request are not the thread's.
		n.Title, n.Body, n.Author, n.URL, n.Pull = "", "", "", "", false
		n.HeadRef, n.HeadRepoID = "", 0
	}
	return t, state, nil
}

// elsewhere reports whether an activity is on the pull request of the thread's issue.
func (it Activity) elsewhere(t thread.ID) bool { return it.Number != t.Number && it.Number != 0 }

// threadOf returns an activity's thread; number 0 means none. An issue's pull request has the issue's thread. If the
// log does not have the pull request's number yet, its branch decides.
func (h *Handlers) threadOf(ctx context.Context, it *Activity) (thread.ID, error) {
	t := thread.ID{Owner: it.Repo.Owner, Name: it.Repo.Name, Number: it.Number}
	if it.thread != nil {
		t = *it.thread
	}
	if t.Number <= 0 {
		return t, nil
	}
	t, err := h.Store.Resolve(ctx, t)
	if err != nil {
		return t, err
	}
	if t.Number != it.Number || !it.Snapshot.Pull {
		return t, nil
	}
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return t, fmt.Errorf("look up the App: %w", err)
	}
	if !strings.EqualFold(it.Snapshot.Author, app.Slug+"[bot]") {
		return t, nil
	}
	head := it.Snapshot.HeadRef
	if head == "" {
		pull, err := h.Forge.PullRequests.Get(ctx, it.Repo, it.Number)
		if errors.Is(err, forge.ErrNotFound) {
			return t, nil
		}
		if err != nil {
			return t, fmt.Errorf("the branch of pull request #%d: %w", it.Number, err)
		}
		head = pull.Head.Ref
	}
	if n, ok := issueOfBranch(head); ok {
		t.Number, it.newPull = n, true
	}
	return t, nil
}

func (h *Handlers) change(ctx context.Context, t thread.ID, s thread.State, it Activity, of Changed, guid string) (string, error) {
	if of.signal != nil {
		why, err := h.mute(ctx, t, s, it, *of.signal)
		if why != "" || err != nil {
			return why, err
		}
	}
	c := *of.Change
	if it.elsewhere(t) {
		note, err := it.onPull(t, s, &c)
		if note != "" || err != nil {
			return note, err
		}
	}
	c.Delivery = guid
	if it.Snapshot != (thread.Details{}) {
		c.Snapshot = &it.Snapshot
	}
	events, err := h.thumbs(ctx, t, s, it, of.Change.What)
	if err != nil {
		return "", err
	}
	events = append(events, thread.NewEvent{Key: it.Key, Kind: thread.KindThread, At: h.Now(), Data: c})
	_, err = h.Store.Append(ctx, t, true, events...)
	return c.What, err
}

// onPull turns the end or reopening of an issue's pull request into the thread's change. The note says why the
// change does not count.
func (it Activity) onPull(t thread.ID, s thread.State, c *thread.Change) (note string, err error) {
	switch c.What {
	case "closed", "merged", "reopened":
	default:
		return "", nil
	}
	act, begun := s.Acts[thread.ActPull]
	opening := begun && !act.Done
	if it.newPull && opening {
		return "", fmt.Errorf("pull request #%d was %s before the log of %s recorded it; Pawl retries the delivery", it.Number, c.What, t)
	}
	if it.Number != s.Pull && c.What != "reopened" {
		return "the closed pull request is not the thread's", nil
	}
	c.What, c.Number, c.URL = "pull_"+c.What, it.Number, it.URL
	return "", nil
}

func (all changedAll) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	threads, err := h.Store.ThreadsOf(ctx, it.Repo.Owner, it.Repo.Name)
	if err != nil {
		return "", err
	}
	c := all.change
	// GitHub sends no time. An earlier command must not undo this change.
	c.Delivery, c.MadeAt = guid, h.Now().Truncate(time.Second)
	for _, t := range threads {
		if _, err := h.Store.Append(ctx, t, true, thread.NewEvent{Key: it.Key, Kind: thread.KindThread, At: h.Now(), Data: c}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d threads", c.What, len(threads)), nil
}

// remark judges a remark and appends feedback, a control, a question, or an ignored remark with the reason.
func (h *Handlers) remark(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark, guid string) (string, error) {
	parsed := r.Parsed()
	r = &parsed
	j, err := h.judge(ctx, t, s, it, r)
	if err != nil {
		return "", err
	}
	if forgettable(s, r, j) {
		// Anyone could fill the log with remarks that do not name Pawl.
		if named, err := h.namesPawl(ctx, *r); err != nil || !named {
			return fmt.Sprintf("%s: %s", thread.KindIgnored, j.Reason), err
		}
	}
	f := it.judged(r, j)
	f.Delivery = guid
	if j.Accepted {
		f.Generation, f.Cause, err = h.descends(ctx, t, s, it, r)
		if err != nil {
			return "", err
		}
	}
	logged, err := h.logged(ctx, t, s, it, f, j)
	if err != nil {
		return "", err
	}
	// The last commit's checks also grade its attempt.
	worth := f.Check != "" && f.SHA == s.CheckedHead() && !j.Own
	wake := j.Accepted || worth || len(logged) > 1 || s.TakenBack(f)
	_, err = h.Store.Append(ctx, t, wake, logged...)
	level := zerolog.InfoLevel
	if j.Own {
		level = zerolog.DebugLevel // Pawl's own texts often come back as webhooks
	}
	kind := logged[0].Kind
	h.Log.WithLevel(level).Str("delivery", guid).Str("thread", t.String()).Str("kind", string(kind)).Str("by", r.Actor.Login).Str("reason", j.Reason).Msg("remark judged")
	return fmt.Sprintf("%s: %s", kind, j.Reason), err
}

// forgettable reports whether an ignored remark stays out of the log unless it names Pawl.
func forgettable(s thread.State, r *feedback.Remark, j feedback.Judgement) bool {
	if j.Accepted || j.Reply != "" {
		return false
	}
	return !s.Tracked() || r.Source == policy.FromAssignment
}

func (it Activity) judged(r *feedback.Remark, j feedback.Judgement) thread.Feedback {
	f := it.feedback(r)
	f.Reason, f.Own, f.Command, f.Mention, f.Pin = j.Reason, j.Own, j.Command.Name, j.Command.Mention, j.Backend
	f.Severity = feedback.Severity(*r)
	f.Standing = r.State == feedback.Present
	f.Text, f.Raw, f.Description = j.Text, r.Text, j.Description
	if j.Own {
		// The log already has the act, and GitHub has the text.
		f.Raw = ""
	}
	switch r.Source {
	case policy.FromCheckRun:
		f.Check, f.Conclusion = r.Name, r.State
	case policy.FromReviewComment:
		if r.Name != "" {
			f.Text = r.Name + "\n" + f.Text
		}
	case policy.FromDescription:
		f.Baseline = feedback.Content(r.Was)
	default:
	}
	if !j.Accepted {
		return brief(f)
	}
	return f
}

// logged returns a judged remark's events: first the remark's own, then a question if Pawl must reply to its writer.
func (h *Handlers) logged(ctx context.Context, t thread.ID, s thread.State, it Activity, f thread.Feedback, j feedback.Judgement) ([]thread.NewEvent, error) {
	entry := EntryOf(s, it.Snapshot.Pull || it.Number != t.Number, f, j, Backends{
		Known:     h.Solver.HasBackend,
		Escalates: func() bool { return h.Solver.Escalates(s) },
	})
	e := thread.NewEvent{Key: it.Key, Kind: entry.Kind, At: h.Now(), Data: entry.Data}
	if j.Accepted && policy.CommandNamed(f.Command).Effect == policy.Pauses {
		paused, err := h.pause(ctx, t, f)
		if err != nil {
			return nil, err
		}
		paused.Key = it.Key
		e = paused
	}
	if j.Reply != "" {
		replies, err := h.reply(ctx, it, f, j)
		return append([]thread.NewEvent{e}, replies...), err
	}
	if entry.Question == nil {
		return []thread.NewEvent{e}, nil
	}
	answer := thread.NewEvent{Key: it.Key + "/answer", Kind: thread.KindQuestion, At: h.Now(), Data: *entry.Question}
	return []thread.NewEvent{e, answer}, nil
}

// Entry is a judged remark in the log: feedback, a control, a question, or ignored.
type Entry struct {
	Kind thread.Kind
	Data any
	// Question is an additional question whose answer reports the command's effect. Nil for none.
	Question *thread.Feedback
}

// Backends describes the server's backends for EntryOf.
type Backends struct {
	Known     func(name string) bool
	Escalates func() bool // a backend of the thread has an escalated effort
}

// EntryOf returns a remark's log entry. onPull means that the remark was made on a pull request.
func EntryOf(s thread.State, onPull bool, f thread.Feedback, j feedback.Judgement, b Backends) Entry {
	if !j.Accepted {
		return Entry{Kind: thread.KindIgnored, Data: f}
	}
	word := j.Command.Text
	e := Entry{Kind: thread.KindFeedback, Data: f}
	if name, unknown := unknownBackend(f, word, b); unknown {
		f.Command = "use"
		e = question(f, name)
	} else if pointless(s, onPull, f) {
		e = question(f, "")
	} else {
		switch policy.CommandNamed(f.Command).Effect {
		case policy.Controls:
			command := f
			if f.Command == "use" {
				command.Backend = word
			}
			e = Entry{Kind: thread.KindControl, Data: command}
		case policy.Answers:
			e = question(f, word)
		default:
		}
	}
	if e.Kind != thread.KindQuestion && needsAnswer(s, f, b) {
		f.Word = word
		e.Question = &f
	}
	return e
}

// question returns an entry that Pawl answers in a comment. word is the question's subject, such as an unknown backend.
func question(f thread.Feedback, word string) Entry {
	f.Word = word
	return Entry{Kind: thread.KindQuestion, Data: f}
}

// unknownBackend returns the backend that a remark names and the server does not have. A use command without a name
// also counts as unknown.
func unknownBackend(f thread.Feedback, word string, b Backends) (name string, unknown bool) {
	if f.Command == "use" && !b.Known(word) {
		return word, true
	}
	if f.Pin != "" && !b.Known(f.Pin) {
		return f.Pin, true
	}
	return "", false
}

// pointless reports whether a command lacks its object: a pull request, a text, or a plan.
func pointless(s thread.State, onPull bool, f thread.Feedback) bool {
	switch f.Command {
	case "update", "watch":
		return s.Pull == 0 && !onPull
	case "ask", "steer":
		return strings.TrimSpace(feedback.Visible(f.Text)) == ""
	case "go":
		made, _ := s.Plan()
		return made == nil
	}
	return false
}

// needsAnswer reports whether a command's effect is invisible to its writer or smaller than expected.
func needsAnswer(s thread.State, f thread.Feedback, b Backends) bool {
	switch f.Command {
	case "use":
		return true
	case "stop":
		return !s.Open() && !s.Watching()
	case "unwatch":
		return !s.Watching() && f.Source != policy.FromLabel
	case "escalate":
		return !b.Escalates()
	}
	return false
}

// editorUnknown explains why an edit without a webhook requests no work. The REST API does not name a text's editor.
const editorUnknown = "the editor is unknown: no webhook reported the edit; write a new comment to request it"

func (h *Handlers) unattributed(ctx context.Context, t thread.ID, it Activity, r *feedback.Remark) (string, error) {
	events, err := h.Store.Events(ctx, t, 0)
	if err != nil {
		return "", err
	}
	if last, ok := Texts(events)[identity(it.feedback(r))]; ok && Same(last, r.Text) {
		return "a webhook reported the edit in the meantime", nil
	}
	f := it.feedback(r)
	f.Delivery, f.Reason, f.Raw = ReconciledEdit, editorUnknown, r.Text
	_, err = h.Store.Append(ctx, t, false, thread.NewEvent{Key: it.Key, Kind: thread.KindIgnored, At: h.Now(), Data: brief(f)})
	return fmt.Sprintf("%s: %s", thread.KindIgnored, editorUnknown), err
}

// maxIgnored is the number of bytes of an ignored text that the log keeps for /pawl why.
const maxIgnored = 500

// brief shortens an ignored remark. It keeps a restored description whole, since the fold needs it. Pawl accepts a
// restoration only from a user with write permission.
func brief(f thread.Feedback) thread.Feedback {
	f.Raw = strings.ToValidUTF8(f.Raw[:min(len(f.Raw), maxIgnored)], "")
	if f.Description != "" {
		return f
	}
	f.Text, f.Baseline = "", ""
	if f.Snapshot != nil {
		n := *f.Snapshot
		n.Title, n.Body = "", ""
		f.Snapshot = &n
	}
	return f
}

// judge calls feedback.Judge and does the lookups that it requires.
func (h *Handlers) judge(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark) (feedback.Judgement, error) {
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return feedback.Judgement{}, fmt.Errorf("look up the App: %w", err)
	}
	scene := feedback.Scene{
		Self:        feedback.Self{AppID: app.ID, BotID: app.BotID, Slug: app.Slug, User: h.StandIn},
		Label:       thread.Label,
		AllowedBots: h.Solver.Env.Current().Policy.AllowedBots,
		ByPawl:      s.IsOwn(it.Target),
		Marked:      r.Source != policy.FromDescription && thread.Marked(r.Unquoted()),
		Tracked:     s.Tracked(),
		ClosedSince: s.ClosedSince(it.MadeAt),
		Working:     s.Open(),
		OwnPull:     it.newPull || s.Pull != 0 && s.Pull == it.Number,
		Asked:       s.Tracked() && awaitsAnswer(s.Decision),
		Head:        s.CheckedHead(),
		Known:       s.Known,
		TakenTexts:  s.TakenTexts,
		Own:         s.Own,
	}
	for {
		j := feedback.Judge(*r, scene)
		switch j.Needs {
		case feedback.AgentTexts:
			scene.ByAgent, err = h.authored(ctx, t, *r, it.MadeAt)
		case feedback.Permission:
			scene.Permission, scene.Unseen, err = h.permission(ctx, it.Repo, r.Actor.Login)
		case feedback.Closing:
			scene.ClosedSince, err = h.closedSince(ctx, it)
		default:
			return j, nil
		}
		if err != nil {
			return j, err
		}
		scene.Looked = append(scene.Looked, j.Needs)
	}
}

// awaitsAnswer reports whether the work waits for an answer to the agent's question or refusal.
func awaitsAnswer(d *thread.Decided) bool {
	if d == nil {
		return false
	}
	return d.Rule == policy.RuleQuestion || d.Rule == policy.RuleDeclined
}

// namesPawl reports whether a remark names Pawl, even in a quoted command. Its writer may expect a reaction.
func (h *Handlers) namesPawl(ctx context.Context, r feedback.Remark) (bool, error) {
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return false, err
	}
	text, name := strings.ToLower(r.Text), strings.ToLower(r.Name)
	if strings.Contains(text, "/pawl") || strings.Contains(text, "@"+strings.ToLower(app.Slug)) {
		return true, nil
	}
	switch r.Source {
	case policy.FromAssignment:
		return feedback.Self{BotID: app.BotID, User: h.StandIn}.Is(r.To), nil
	case policy.FromLabel:
		return strings.HasPrefix(name+":", thread.Label+":"), nil
	default:
		return false, nil
	}
}

// closedSince asks GitHub whether the thread was closed after a remark. A request on an already closed thread is
// valid.
func (h *Handlers) closedSince(ctx context.Context, it Activity) (why string, err error) {
	if it.MadeAt.IsZero() {
		return "", nil
	}
	i, err := h.Forge.Issues.Get(ctx, it.Repo, it.Number)
	var moved *forge.Moved
	switch {
	case isAny(err, forge.ErrNotFound, forge.ErrGone, forge.ErrForbidden, forge.ErrUninstalled), errors.As(err, &moved):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("look up whether %s#%d is open: %w", it.Repo.FullName(), it.Number, err)
	case i.State == "closed" && !i.Closed.Before(it.MadeAt): // "Close with comment" adds the comment first
		return "the thread was closed", nil
	}
	return "", nil
}
