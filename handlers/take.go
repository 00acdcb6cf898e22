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

// Decide decides about one activity and appends the event. guid names the delivery
// that brought it, is Reconciled, or tells in other words where it is from. The note says in a few words what became of it.
func (h *Handlers) Decide(ctx context.Context, it Activity, guid string) (string, error) {
	if it.What == nil {
		return "", nil
	}
	return it.What.decide(ctx, h, it, guid)
}

// decide has a remark judged, unless it was before.
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
		return "the reconciliation took it in before", nil
	case state.Outdated(it.feedback(r.Remark)):
		return "it was accepted before, as it is or in a newer version", nil
	case r.Anonymous:
		return h.unattributed(ctx, t, it, r.Remark)
	}
	return h.remark(ctx, t, state, it, r.Remark, guid)
}

// decide appends what happened to a thread that Pawl works on; others are of no interest.
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
	if !state.Tracked() {
		return untracked(t), nil
	}
	return h.change(ctx, t, state, it, c, guid)
}

const noThread = "it belongs to no thread"

func untracked(t thread.ID) string { return "Pawl does not work on " + t.String() }

// locate finds the thread of an activity and reads its log; number zero means none.
func (h *Handlers) locate(ctx context.Context, it *Activity) (thread.ID, thread.State, error) {
	t, err := h.threadOf(ctx, it)
	if err != nil || t.Number <= 0 {
		return t, thread.State{}, err
	}
	_, state, err := thread.Load(ctx, h.Store, t)
	if errors.Is(err, thread.ErrDamaged) {
		_, woken := h.Store.Append(ctx, t, true) // its step tells people
		return t, state, errors.Join(err, woken)
	}
	if err != nil {
		return t, state, err
	}
	if n := &it.Snapshot; it.elsewhere(t) {
		// The pull request of an issue: its own title and description are not the thread's.
		n.Title, n.Body, n.Author, n.URL, n.Pull = "", "", "", "", false
		n.HeadRef, n.HeadRepoID = "", 0
	}
	return t, state, nil
}

// elsewhere reports whether an activity is on the pull request of the thread, which is an issue.
func (it Activity) elsewhere(t thread.ID) bool { return it.Number != t.Number && it.Number != 0 }

// threadOf is the thread that an activity concerns; number zero means none. The pull request of an issue has
// the issue's. GitHub may send what is said there before the log knows the pull request's number: then the
// branch tells, which only Pawl's own pull requests are asked for.
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
		return t, fmt.Errorf("who this App is: %w", err)
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

// change appends what happened to a thread.
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

// onPull makes the end and the return of a pull request that an issue's thread opened changes of their own. The note says
// why such a change is none.
func (it Activity) onPull(t thread.ID, s thread.State, c *thread.Change) (note string, err error) {
	switch c.What {
	case "closed", "merged", "reopened":
	default:
		return "", nil
	}
	act, begun := s.Acts[thread.ActPull]
	opening := begun && !act.Done
	if it.newPull && opening {
		return "", fmt.Errorf("pull request #%d was %s before the log of %s names it; it is taken again when it does", it.Number, c.What, t)
	}
	if it.Number != s.Pull && c.What != "reopened" {
		return "the closed pull request is not the thread's", nil
	}
	c.What, c.Number, c.URL = "pull_"+c.What, it.Number, it.URL
	return "", nil
}

// decide changes all threads of a repository.
func (all changedAll) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	threads, err := h.Store.ThreadsOf(ctx, it.Repo.Owner, it.Repo.Name)
	if err != nil {
		return "", err
	}
	c := all.change
	// GitHub names no time; a command that was given before this change must not undo it.
	c.Delivery, c.MadeAt = guid, h.Now().Truncate(time.Second)
	for _, t := range threads {
		if _, err := h.Store.Append(ctx, t, true, thread.NewEvent{Key: it.Key, Kind: thread.KindThread, At: h.Now(), Data: c}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d threads", c.What, len(threads)), nil
}

// remark asks policy and appends feedback, a control, a question, or what was ignored and why.
func (h *Handlers) remark(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark, guid string) (string, error) {
	parsed := r.Parsed()
	r = &parsed
	j, err := h.judge(ctx, t, s, it, r)
	if err != nil {
		return "", err
	}
	if forgettable(s, r, j) {
		// Nobody will want to know of what does not name Pawl, and anybody could fill the log.
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
	// The checks of the last commit are also what its attempt is worth.
	worth := f.Check != "" && f.SHA == s.Head && !j.Own
	wake := j.Accepted || worth || len(logged) > 1 || s.TakenBack(f)
	_, err = h.Store.Append(ctx, t, wake, logged...)
	level := zerolog.InfoLevel
	if j.Own {
		level = zerolog.DebugLevel // Pawl's own words come back all the time
	}
	kind := logged[0].Kind
	h.Log.WithLevel(level).Str("delivery", guid).Str("thread", t.String()).Str("kind", string(kind)).Str("by", r.Actor.Login).Str("reason", j.Reason).Msg("remark judged")
	return fmt.Sprintf("%s: %s", kind, j.Reason), err
}

// forgettable reports whether an ignored remark need not be in the log, unless it names Pawl.
func forgettable(s thread.State, r *feedback.Remark, j feedback.Judgement) bool {
	if j.Accepted {
		return false
	}
	return !s.Tracked() || r.Source == policy.FromAssignment
}

// judged is what the log tells of a remark and of what it came to.
func (it Activity) judged(r *feedback.Remark, j feedback.Judgement) thread.Feedback {
	f := it.feedback(r)
	f.Reason, f.Own, f.Command, f.Mention, f.Pin = j.Reason, j.Own, j.Command.Name, j.Command.Mention, j.Backend
	f.Severity = feedback.Severity(*r)
	f.Text, f.Raw, f.Description = j.Text, r.Text, j.Description
	if j.Own {
		// The log holds the act, and GitHub the text.
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

// logged is what a judged remark adds to the log: its own event first, and questions whose answers tell its writer something.
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
	if j.Tell != "" {
		told, err := h.tell(ctx, it, f, j)
		return append([]thread.NewEvent{e}, told...), err
	}
	if entry.Told == nil {
		return []thread.NewEvent{e}, nil
	}
	told := thread.NewEvent{Key: it.Key + "/answer", Kind: thread.KindQuestion, At: h.Now(), Data: *entry.Told}
	return []thread.NewEvent{e, told}, nil
}

// Entry is what a judged remark is in the log: feedback, a control, a question, or what was ignored.
type Entry struct {
	Kind thread.Kind
	Data any
	// Told is a question that is logged as well: its answer says what the command did. Nil for none.
	Told *thread.Feedback
}

// Backends is what EntryOf asks about the backends of the server.
type Backends struct {
	Known     func(name string) bool
	Escalates func() bool // whether a backend of the thread has an escalated effort
}

// EntryOf says what a remark is in the log of a thread. onPull says that it was made on a pull request.
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
			order := f
			order.Backend = word
			e = Entry{Kind: thread.KindControl, Data: order}
		case policy.Answers:
			e = question(f, word)
		default:
		}
	}
	if e.Kind != thread.KindQuestion && needsAnswer(s, f.Command, b) {
		f.Word = word
		e.Told = &f
	}
	return e
}

// question is feedback that is answered in a comment, about a word.
func question(f thread.Feedback, word string) Entry {
	f.Word = word
	return Entry{Kind: thread.KindQuestion, Data: f}
}

// unknownBackend reports whether a remark chooses a backend that the server does not have, and its name; a use without a
// name chooses none that it has.
func unknownBackend(f thread.Feedback, word string, b Backends) (name string, unknown bool) {
	if f.Command == "use" && !b.Known(word) {
		return word, true
	}
	if f.Pin != "" && !b.Known(f.Pin) {
		return f.Pin, true
	}
	return "", false
}

// pointless reports whether a command lacks what it works on: a pull request, a question, or a plan.
func pointless(s thread.State, onPull bool, f thread.Feedback) bool {
	switch f.Command {
	case "update":
		return s.Pull == 0 && !onPull
	case "ask":
		return strings.TrimSpace(f.Text) == ""
	case "go":
		made, _ := s.Plan()
		return made == nil
	}
	return false
}

// needsAnswer reports whether a command has an effect that its writer does not see, or less than its writer may think.
func needsAnswer(s thread.State, command string, b Backends) bool {
	switch command {
	case "use":
		return true
	case "stop":
		return !s.Open()
	case "escalate":
		return !b.Escalates()
	}
	return false
}

// editorUnknown is why an edit that no webhook brought asks for nothing. By
// webhook only a writer's own edit counts; the REST API names the author of a text
// and never its editor, and a bot may edit what a writer wrote.
const editorUnknown = "who edited it is not known: no webhook told of the edit; write a new comment to ask for it"

// unattributed logs an edit of which the editor is not known, as ignored.
func (h *Handlers) unattributed(ctx context.Context, t thread.ID, it Activity, r *feedback.Remark) (string, error) {
	events, err := h.Store.Events(ctx, t, 0)
	if err != nil {
		return "", err
	}
	if last, ok := Texts(events)[identity(it.feedback(r))]; ok && Same(last, r.Text) {
		return "a webhook brought it meanwhile", nil
	}
	f := it.feedback(r)
	f.Delivery, f.Reason, f.Raw = ReconciledEdit, editorUnknown, r.Text
	_, err = h.Store.Append(ctx, t, false, thread.NewEvent{Key: it.Key, Kind: thread.KindIgnored, At: h.Now(), Data: brief(f)})
	return fmt.Sprintf("%s: %s", thread.KindIgnored, editorUnknown), err
}

// maxIgnored bounds what is kept of a text that is ignored, in bytes: anybody may
// write as much of it as GitHub allows, and /pawl why shows its beginning.
const maxIgnored = 500

// brief is an ignored remark without the texts that nobody will need. The fold
// needs those of an edit back, which only who may write can make.
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

// judge asks policy, and looks up what it says it needs.
func (h *Handlers) judge(ctx context.Context, t thread.ID, s thread.State, it Activity, r *feedback.Remark) (feedback.Judgement, error) {
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return feedback.Judgement{}, fmt.Errorf("who this App is: %w", err)
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
		Asked:       awaitsAnswer(s.Decision),
		Head:        s.Head,
		Known:       s.Known,
		Said:        s.Said,
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

// awaitsAnswer reports whether the work waits for what a user says to the agent's question or refusal.
func awaitsAnswer(d *thread.Decided) bool {
	if d == nil {
		return false
	}
	return d.Rule == policy.RuleQuestion || d.Rule == policy.RuleDeclined
}

// namesPawl reports whether a remark names Pawl, whatever became of it. A command in a
// quotation does, too: its writer may wonder why nothing happens.
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

// closedSince asks GitHub whether the thread is closed, and was not before a remark
// was made on it: somebody who asks for work on a closed thread wants it. A thread
// that GitHub does not show is left to the step, which says what is wrong with it.
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
		return "", fmt.Errorf("whether %s#%d is open: %w", it.Repo.FullName(), it.Number, err)
	case i.State == "closed" && !i.Closed.Before(it.MadeAt): // of the same second: who closes with a comment makes that first
		return "the thread was closed", nil
	}
	return "", nil
}
