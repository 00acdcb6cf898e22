package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// maxRaw bounds the text that an event keeps, in bytes. GitHub's own limit on a
// comment or description is 65,536 characters.
const maxRaw = 64 << 10

// take decides about one happening and appends the event.
func (h *Handlers) take(ctx context.Context, hp happening, guid string) (string, error) {
	if hp.everyone {
		return h.changeAll(ctx, hp, guid)
	}
	hp, err := h.byCommit(ctx, hp)
	if err != nil {
		return "", err
	}
	t, err := h.threadOf(ctx, hp)
	if err != nil {
		return "", err
	}
	if t.Number <= 0 {
		return "it belongs to no thread", nil
	}
	state, reconciled, err := h.logs.of(ctx, h.Store, t)
	if err != nil {
		return "", err
	}
	snapshot := hp.snapshot
	if hp.number != t.Number && hp.number != 0 {
		// The pull request of an issue: its own title and description are not
		// the thread's.
		snapshot.Title, snapshot.Body, snapshot.Author, snapshot.URL, snapshot.Pull = "", "", "", "", false
		snapshot.HeadRef, snapshot.HeadRepoID = "", 0
	}
	switch {
	case hp.change != nil:
		return h.change(ctx, t, state, hp, &snapshot, guid)
	case hp.remark != nil && guid != Reconciled && overtaken(reconciled, hp):
		return "the reconciliation took it in before", nil
	case hp.remark != nil && state.Outdated(version(hp)):
		return "it was accepted before, as it is or in a newer version", nil
	case hp.anonymous:
		return h.unattributed(ctx, t, hp, &snapshot)
	case hp.remark != nil:
		return h.remark(ctx, t, state, hp, &snapshot, guid)
	}
	return hp.note, nil
}

func (h *Handlers) threadOf(ctx context.Context, hp happening) (solver.Thread, error) {
	t := solver.Thread{Owner: hp.repo.Owner, Name: hp.repo.Name, Number: hp.number}
	if hp.thread != nil {
		t = *hp.thread
	}
	if t.Number <= 0 {
		return t, nil
	}
	return h.Store.Resolve(ctx, t)
}

// change appends what happened to a thread that Pawl works on; others are of no
// interest.
func (h *Handlers) change(ctx context.Context, t solver.Thread, s solver.State, hp happening, n *solver.Snapshot, guid string) (string, error) {
	if !s.Tracked() {
		return "Pawl does not work on " + t.String(), nil
	}
	if hp.signal != nil {
		if why, err := h.mute(ctx, t, s, hp); why != "" || err != nil {
			return why, err
		}
	}
	c := *hp.change
	if own := hp.number != t.Number && hp.number != 0; own && (c.What == "closed" || c.What == "merged" || c.What == "reopened") {
		if hp.number != s.Pull && c.What != "reopened" {
			return "the closed pull request is not the thread's", nil
		}
		c.What, c.Number, c.URL = "pull_"+c.What, hp.number, hp.url
	}
	c.Delivery = guid
	if *n != (solver.Snapshot{}) {
		c.Snapshot = n
	}
	_, err := h.Store.Append(ctx, t, true, solver.NewEvent{Key: hp.once, Kind: solver.KindThread, At: h.Now(), Data: c})
	return c.What, err
}

// changeAll appends a change to every thread of a repository or of an owner.
func (h *Handlers) changeAll(ctx context.Context, hp happening, guid string) (string, error) {
	threads, err := h.Store.ThreadsOf(ctx, hp.repo.Owner, hp.repo.Name)
	if err != nil {
		return "", err
	}
	c := *hp.change
	// GitHub names no time; an order that was made before this one must not undo it.
	c.Delivery, c.MadeAt = guid, h.Now().Truncate(time.Second)
	for _, t := range threads {
		if _, err := h.Store.Append(ctx, t, true, solver.NewEvent{Key: hp.once, Kind: solver.KindThread, At: h.Now(), Data: c}); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%s: %d threads", c.What, len(threads)), nil
}

// remark asks policy and appends feedback, a control, a question, or what was
// ignored and why.
func (h *Handlers) remark(ctx context.Context, t solver.Thread, s solver.State, hp happening, n *solver.Snapshot, guid string) (string, error) {
	r := *hp.remark
	j, asked, err := h.judge(ctx, t, s, hp)
	if err == nil && j.Accepted && r.Source == policy.FromCheckRun {
		// Only now, for it costs requests.
		r.Text = h.annotated(ctx, hp, r.Text)
		hp.remark = &r
		if j, asked, err = h.judge(ctx, t, s, hp); j.Accepted {
			hp.once = failedKey(r.SHA, r.Name)
		}
	}
	if err != nil {
		return "", err
	}
	f := solver.Feedback{
		Source: r.Source, By: r.Actor, Reason: j.Reason, Own: j.Own, Number: hp.number, Command: j.Command.Name, Mention: j.Command.Mention, Text: cut(j.Text), Raw: cut(r.Text),
		Description: j.Description, Target: hp.target, First: version(hp).First, URL: hp.url, SHA: r.SHA, MadeAt: hp.madeAt, Delivery: guid, Snapshot: n,
	}
	if r.Source == policy.FromCheckRun {
		f.Check, f.Conclusion, f.Outside = cut(r.Name), r.State, j.Outside
	}
	if j.Own {
		// The log holds the act, and GitHub the text.
		f.Raw = ""
	}
	if r.Source == policy.FromReviewComment && r.Name != "" {
		f.Text = r.Name + "\n" + f.Text
	}
	if r.Source == policy.FromDescription {
		f.Baseline = policy.Content(r.Was)
	}
	if !j.Accepted {
		f = brief(f)
	}
	kind, data := solver.KindFeedback, any(f)
	if !j.Accepted && !s.Tracked() && !asked {
		// Nobody will want to know, and anybody could fill the log.
		return fmt.Sprintf("%s: %s", solver.KindIgnored, j.Reason), nil
	}
	switch {
	case !j.Accepted:
		kind = solver.KindIgnored
	case f.Command == "stop" || f.Command == "use":
		kind, data = solver.KindControl, solver.Control{Feedback: f, Backend: j.Command.Text}
	case f.Command == "status" || f.Command == "why" || f.Command == "unknown":
		kind, data = solver.KindQuestion, solver.Question{Feedback: f, Word: j.Command.Text}
	}
	// The checks of the last commit are also what its attempt is worth.
	wake := j.Accepted || f.Check != "" && f.SHA == s.Head && !j.Own
	err = h.record(ctx, t, wake, solver.NewEvent{Key: hp.once, Kind: kind, At: h.Now(), Data: data}, f)
	h.Log.Info().Str("delivery", guid).Str("thread", t.String()).Str("kind", string(kind)).Str("by", r.Actor.Login).Str("reason", j.Reason).Msg("remark judged")
	return fmt.Sprintf("%s: %s", kind, j.Reason), err
}

// maxIgnored bounds what is kept of a text that is ignored, in bytes: anybody may
// write as much of it as GitHub allows, and /pawl why shows its beginning.
const maxIgnored = 500

// brief is an ignored remark without the texts that nobody will need. The fold
// needs those of an edit back, which only who may write can make.
func brief(f solver.Feedback) solver.Feedback {
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

// judge looks at the cheap evidence first, and at the permission and the
// transcripts only for what would otherwise be accepted. asked says that the
// remark names Pawl, whatever became of it.
func (h *Handlers) judge(ctx context.Context, t solver.Thread, s solver.State, hp happening) (j policy.Judgement, asked bool, err error) {
	r := *hp.remark
	app, err := h.Forge.App(ctx)
	if err != nil {
		return j, false, fmt.Errorf("who this App is: %w", err)
	}
	// Also a command in a quotation: its writer may wonder why nothing happens.
	text := strings.ToLower(r.Text)
	asked = strings.Contains(text, "/pawl") || strings.Contains(text, "@"+strings.ToLower(app.Slug)) ||
		r.Source == policy.FromLabel && strings.EqualFold(r.Name, solver.Label)
	scene := policy.Scene{
		Self: policy.Self{AppID: app.ID, BotID: app.BotID, Slug: app.Slug}, Label: solver.Label, AllowedBots: h.AllowedBots,
		Wrote:   hp.target.Kind != "issue" && s.Wrote(hp.target.ID),
		Marked:  r.Source != policy.FromDescription && solver.Marked(r.Text),
		Tracked: s.Tracked(), ClosedSince: s.ClosedSince(hp.madeAt), Working: s.Open(), OwnPull: s.Pull != 0 && s.Pull == hp.number,
		Head: s.Head, Failed: failed(s), Known: s.Known,
	}
	if j = policy.Judge(r, scene); !j.NeedsPermission && !j.Accepted {
		return j, asked, nil
	}
	wrote, err := h.agentWrote(ctx, t, r, hp.madeAt)
	if err != nil {
		return j, asked, err
	}
	// A stop needs the permission also where the agent wrote the same.
	scene.AgentWrote = wrote
	if j = policy.Judge(r, scene); j.NeedsPermission {
		if scene.Permission, err = h.permission(ctx, hp.repo, r.Actor.Login); err != nil {
			return j, asked, err
		}
		j = policy.Judge(r, scene)
	}
	if !j.Accepted || !j.Command.Works() || s.Tracked() {
		return j, asked, nil
	}
	// No log tells of a closing that came before the first order.
	if scene.ClosedSince, err = h.closedSince(ctx, hp); err != nil {
		return j, asked, err
	}
	return policy.Judge(r, scene), asked, nil
}

// agentWrote reports whether the agent itself made the remark. Of an edited
// description only what was added need be the agent's.
func (h *Handlers) agentWrote(ctx context.Context, t solver.Thread, r policy.Remark, at time.Time) (bool, error) {
	parts := []string{r.Text}
	if r.Source == policy.FromDescription {
		parts = policy.Additions(r.Was, r.Text)
	}
	for _, part := range parts {
		if wrote, err := h.Solver.AgentWrote(ctx, t, part, at); !wrote || err != nil {
			return false, err
		}
	}
	return len(parts) > 0, nil
}

// cutNote ends a text of which only the beginning is kept.
const cutNote = "\n[cut: the text is longer than 64 KiB]"

func cut(s string) string {
	if len(s) <= maxRaw {
		return s
	}
	return strings.ToValidUTF8(s[:maxRaw], "") + cutNote
}
