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
	if it.apart != nil {
		return it.apart(h, ctx, it, guid)
	}
	it, err := h.byCommit(ctx, it)
	if err != nil {
		return "", err
	}
	t, err := h.threadOf(ctx, &it)
	if err != nil {
		return "", err
	}
	if t.Number <= 0 {
		return "it belongs to no thread", nil
	}
	_, state, err := thread.Load(ctx, h.Store, t)
	if err != nil {
		return "", err
	}
	if n := &it.Snapshot; it.Number != t.Number && it.Number != 0 {
		// The pull request of an issue: its own title and description are not the thread's.
		n.Title, n.Body, n.Author, n.URL, n.Pull = "", "", "", "", false
		n.HeadRef, n.HeadRepoID = "", 0
	}
	switch {
	case it.suite && !state.Tracked():
		return "Pawl does not work on " + t.String(), nil
	case it.Change != nil:
		return h.change(ctx, t, state, it, guid)
	case it.Remark != nil && guid != Reconciled && overtaken(state, it):
		return "the reconciliation took it in before", nil
	case it.Remark != nil && state.Outdated(it.feedback()):
		return "it was accepted before, as it is or in a newer version", nil
	case it.Anonymous:
		return h.unattributed(ctx, t, it)
	case it.Remark != nil:
		return h.remark(ctx, t, state, it, guid)
	}
	return it.note, nil
}

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
	if err != nil || t.Number != it.Number || !it.Snapshot.Pull {
		return t, err
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

// change appends what happened to a thread that Pawl works on; others are of no interest.
func (h *Handlers) change(ctx context.Context, t thread.ID, s thread.State, it Activity, guid string) (string, error) {
	if !s.Tracked() {
		return "Pawl does not work on " + t.String(), nil
	}
	if it.signal != nil {
		if why, err := h.mute(ctx, t, s, it); why != "" || err != nil {
			return why, err
		}
	}
	c := *it.Change
	if own := it.Number != t.Number && it.Number != 0; own && (c.What == "closed" || c.What == "merged" || c.What == "reopened") {
		if act, begun := s.Acts[thread.ActPull]; it.newPull && begun && !act.Done {
			return "", fmt.Errorf("pull request #%d was %s before the log of %s names it; it is taken again when it does", it.Number, c.What, t)
		}
		if it.Number != s.Pull && c.What != "reopened" {
			return "the closed pull request is not the thread's", nil
		}
		c.What, c.Number, c.URL = "pull_"+c.What, it.Number, it.URL
	}
	c.Delivery = guid
	if it.Snapshot != (thread.Details{}) {
		c.Snapshot = &it.Snapshot
	}
	events, err := h.thumbs(ctx, t, s, it)
	if err != nil {
		return "", err
	}
	_, err = h.Store.Append(ctx, t, true, append(events, thread.NewEvent{Key: it.Key, Kind: thread.KindThread, At: h.Now(), Data: c})...)
	return c.What, err
}

func (h *Handlers) changeAll(ctx context.Context, it Activity, guid string) (string, error) {
	threads, err := h.Store.ThreadsOf(ctx, it.Repo.Owner, it.Repo.Name)
	if err != nil {
		return "", err
	}
	c := *it.Change
	// GitHub names no time; an order that was made before this one must not undo it.
	c.Delivery, c.MadeAt = guid, h.Now().Truncate(time.Second)
	for _, t := range threads {
		if _, err := h.Store.Append(ctx, t, true, thread.NewEvent{Key: it.Key, Kind: thread.KindThread, At: h.Now(), Data: c}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d threads", c.What, len(threads)), nil
}

// remark asks policy and appends feedback, a control, a question, or what was ignored and why.
func (h *Handlers) remark(ctx context.Context, t thread.ID, s thread.State, it Activity, guid string) (string, error) {
	r := it.Remark
	j, err := h.judge(ctx, t, s, it)
	if err != nil {
		return "", err
	}
	if !j.Accepted && (!s.Tracked() || r.Source == policy.FromAssignment) {
		// Nobody will want to know of what does not name Pawl, and anybody could fill the log.
		if named, err := h.namesPawl(ctx, *r); err != nil || !named {
			return fmt.Sprintf("%s: %s", thread.KindIgnored, j.Reason), err
		}
	}
	f := it.feedback()
	f.Delivery, f.Reason, f.Own, f.Command, f.Mention, f.Pin = guid, j.Reason, j.Own, j.Command.Name, j.Command.Mention, j.Backend
	f.Severity = feedback.Severity(*r)
	f.Text, f.Raw, f.Description = j.Text, r.Text, j.Description
	if r.Source == policy.FromCheckRun {
		f.Check, f.Conclusion = r.Name, r.State
	}
	if j.Own {
		// The log holds the act, and GitHub the text.
		f.Raw = ""
	}
	if r.Source == policy.FromReviewComment && r.Name != "" {
		f.Text = r.Name + "\n" + f.Text
	}
	if r.Source == policy.FromDescription {
		f.Baseline = feedback.Content(r.Was)
	}
	if !j.Accepted {
		f = brief(f)
	} else if f.Generation, f.Cause, err = h.descends(ctx, t, s, it); err != nil {
		return "", err
	}
	e, told := h.event(t, s, it, f, j)
	if j.Accepted && (f.Command == "pause" || f.Command == "unpause") {
		if e, err = h.pause(ctx, t, f); err != nil {
			return "", err
		}
	}
	e.Key = it.Key
	if j.Tell != "" {
		if told, err = h.tell(ctx, it, f, j); err != nil {
			return "", err
		}
	}
	// The checks of the last commit are also what its attempt is worth.
	wake := j.Accepted || len(told) > 0 || f.Check != "" && f.SHA == s.Head && !j.Own || s.TakenBack(f)
	_, err = h.Store.Append(ctx, t, wake, append([]thread.NewEvent{e}, told...)...)
	level := zerolog.InfoLevel
	if j.Own {
		level = zerolog.DebugLevel // Pawl's own words come back all the time
	}
	h.Log.WithLevel(level).Str("delivery", guid).Str("thread", t.String()).Str("kind", string(e.Kind)).Str("by", r.Actor.Login).Str("reason", j.Reason).Msg("remark judged")
	return fmt.Sprintf("%s: %s", e.Kind, j.Reason), err
}

// event is what a remark is in the log: feedback, a control, a question, or what was ignored. Told is a question beside it,
// whose answer tells somebody that an order, which holds, does less than they may think.
func (h *Handlers) event(t thread.ID, s thread.State, it Activity, f thread.Feedback, j feedback.Judgement) (e thread.NewEvent, told []thread.NewEvent) {
	e = thread.NewEvent{Kind: thread.KindFeedback, At: h.Now(), Data: f}
	made, _ := thread.Plan(s)
	switch {
	case !j.Accepted:
		e.Kind = thread.KindIgnored
		return e, nil
	case f.Command == "use" && !h.Solver.HasBackend(j.Command.Text):
		e.Kind, e.Data = thread.KindQuestion, thread.Question{Feedback: f, Word: j.Command.Text}
	case f.Pin != "" && !h.Solver.HasBackend(f.Pin):
		f.Command = "use"
		e.Kind, e.Data = thread.KindQuestion, thread.Question{Feedback: f, Word: f.Pin}
	case f.Command == "update" && s.Pull == 0 && it.Number == t.Number && !it.Snapshot.Pull, f.Command == "ask" && strings.TrimSpace(f.Text) == "", f.Command == "go" && made == nil:
		e.Kind, e.Data = thread.KindQuestion, thread.Question{Feedback: f}
	case f.Command == "stop" || f.Command == "use":
		e.Kind, e.Data = thread.KindControl, thread.Control{Feedback: f, Backend: j.Command.Text}
	case f.Command == "status" || f.Command == "why" || f.Command == "unknown":
		e.Kind, e.Data = thread.KindQuestion, thread.Question{Feedback: f, Word: j.Command.Text}
	}
	if f.Command == "stop" && !s.Open() || f.Command == "escalate" && !h.Solver.Escalates(s) {
		told = append(told, thread.NewEvent{Key: it.Key + "/answer", Kind: thread.KindQuestion, At: h.Now(), Data: thread.Question{Feedback: f, Word: f.Command}})
	}
	return e, told
}

// editorUnknown is why an edit that no webhook brought asks for nothing. By
// webhook only a writer's own edit counts; the REST API names the author of a text
// and never its editor, and a bot may edit what a writer wrote.
const editorUnknown = "who edited it is not known: no webhook told of the edit; write a new comment to ask for it"

// unattributed logs an edit of which the editor is not known, as ignored.
func (h *Handlers) unattributed(ctx context.Context, t thread.ID, it Activity) (string, error) {
	events, err := h.Store.Events(ctx, t, 0)
	if err != nil {
		return "", err
	}
	if last, ok := Texts(events)[identity(it.feedback())]; ok && Same(last, it.Remark.Text) {
		return "a webhook brought it meanwhile", nil
	}
	f := it.feedback()
	f.Delivery, f.Reason, f.Raw = ReconciledEdit, editorUnknown, it.Remark.Text
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
func (h *Handlers) judge(ctx context.Context, t thread.ID, s thread.State, it Activity) (feedback.Judgement, error) {
	r := it.Remark
	app, err := h.Forge.Apps.Get(ctx)
	if err != nil {
		return feedback.Judgement{}, fmt.Errorf("who this App is: %w", err)
	}
	scene := feedback.Scene{
		Self: feedback.Self{AppID: app.ID, BotID: app.BotID, Slug: app.Slug, User: h.StandIn}, Label: thread.Label, AllowedBots: h.Solver.Env.Current().Policy.AllowedBots,
		ByPawl:  s.IsOwn(it.Target),
		Marked:  r.Source != policy.FromDescription && thread.Marked(feedback.NewPage(r.Text).Unquoted()),
		Tracked: s.Tracked(), ClosedSince: s.ClosedSince(it.MadeAt), Working: s.Open(), OwnPull: it.newPull || s.Pull != 0 && s.Pull == it.Number,
		Asked: s.Decision != nil && (s.Decision.Rule == policy.RuleQuestion || s.Decision.Rule == policy.RuleDeclined),
		Head:  s.Head, Known: s.Known, Said: s.Said, Own: s.Own,
	}
	for {
		j := feedback.Judge(*r, scene)
		switch j.Needs {
		case feedback.AgentTexts:
			scene.ByAgent, err = h.authored(ctx, t, *r, it.MadeAt)
		case feedback.Permission:
			scene.Permission, err = h.permission(ctx, it.Repo, r.Actor.Login)
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

// namesPawl reports whether a remark names Pawl, whatever became of it. A command in a
// quotation does, too: its writer may wonder why nothing happens.
func (h *Handlers) namesPawl(ctx context.Context, r feedback.Remark) (bool, error) {
	app, err := h.Forge.Apps.Get(ctx)
	text := strings.ToLower(r.Text)
	self := feedback.Self{BotID: app.BotID, User: h.StandIn}
	return strings.Contains(text, "/pawl") || r.Source == policy.FromAssignment && self.Is(r.To) || strings.Contains(text, "@"+strings.ToLower(app.Slug)) ||
		r.Source == policy.FromLabel && strings.HasPrefix(strings.ToLower(r.Name)+":", thread.Label+":"), err
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
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrGone), errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUninstalled), errors.As(err, &moved):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("whether %s#%d is open: %w", it.Repo.FullName(), it.Number, err)
	case i.State == "closed" && !i.Closed.Before(it.MadeAt): // of the same second: who closes with a comment makes that first
		return "the thread was closed", nil
	}
	return "", nil
}
