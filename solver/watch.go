package solver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// appearTime is how long the first check of a new head may take to appear. Our choice.
const appearTime = 5 * time.Minute

// runMost limits how long a watch waits for running checks after the newest result. It is the limit of a job on
// GitHub's runners (GitHub's documentation, "Actions limits").
const runMost = 6 * time.Hour

// watch admits a pull request, or looks at its head once the checks have finished.
func (s *step) watch(ctx context.Context) (progress, error) {
	st := s.pub.state
	switch {
	case s.pub.Forge == nil, s.pub.ended():
		return nothing, nil
	case s.watchesOwn():
		return changed, s.pub.lease.Record(ctx, thread.KindControl, s.pub.ownWatch())
	case !st.Watching():
		return nothing, nil
	case st.AdmitDue():
		return changed, s.admitWatch(ctx)
	}
	now, every := s.pub.env.Now(), s.pub.Config.Policy.UpdateEvery
	due, next := st.WatchDue(now, every)
	s.lookAgain = next
	if !due {
		return nothing, nil
	}
	w := &watch{
		look:   look{pub: s.pub, head: st.Snapshot.HeadSHA, baseRef: s.pub.base(), whole: st.Snapshot.Pull, watched: true},
		now:    now,
		merges: every > 0,
	}
	events, err := w.run(ctx)
	if final(err) {
		s.pub.log.Warn().Err(err).Msg("the head of the watched pull request could not be read")
		events, err = append(events, w.unread(err)), nil
	}
	if err != nil {
		return nothing, fmt.Errorf("watch the pull request: %w", err)
	}
	s.checksAt = w.next
	if len(events) == 0 {
		return nothing, nil
	}
	return changed, s.pub.lease.Append(ctx, thread.Batch{Events: events})
}

// watchesOwn reports whether Pawl's pull request must be watched: the repository wants it, and there is no watch yet.
func (s *step) watchesOwn() bool {
	st := s.pub.state
	if st.Repo.Watch.Pulls != config.WatchOwn || st.Pull == 0 {
		return false
	}
	requested := slices.ContainsFunc(st.Controls, func(c thread.Feedback) bool {
		return c.Number == st.Pull && c.Command == "watch"
	})
	return !requested && !st.Watching()
}

// ownWatch returns the request that `watch.pulls: own` makes on behalf of the user who asked for the work.
func (p *publisher) ownWatch() thread.Feedback {
	f := thread.Feedback{
		Source:   policy.FromBase,
		Command:  "watch",
		Number:   p.state.Pull,
		Reason:   "watch.pulls is " + config.WatchOwn,
		Standing: true,
	}
	for _, r := range p.state.Feedback {
		if !fromMachine(r) {
			f.By = r.By
		}
	}
	return f
}

// pullNumber returns the number of the thread's pull request; 0 for none.
func (p *publisher) pullNumber() int {
	if p.state.Snapshot.Pull {
		return p.thread.Number
	}
	return p.state.Pull
}

// base returns the base branch of the thread's work.
func (p *publisher) base() string {
	return cmp.Or(p.state.Snapshot.BaseRef, p.state.Snapshot.DefaultBranch)
}

// requiredFor is how long the required checks of a branch are remembered. Our choice: rules change rarely, and a
// watch looks often.
const requiredFor = time.Hour

// required holds a branch's required checks as of a time.
type required struct {
	checks []string
	at     time.Time
}

// requiredChecks reads the checks that a merge into a branch needs; none if GitHub does not show the rules.
func (s *Solver) requiredChecks(ctx context.Context, p *publisher, branch string) ([]string, error) {
	key := p.thread.Repo() + ":" + branch
	if known, ok := s.required.Load(key); ok {
		r := known.(required)
		if s.Env.Now().Sub(r.at) < requiredFor {
			return r.checks, nil
		}
	}
	rules, err := p.Forge.Repositories.Rules(ctx, p.repo(), branch)
	if err := unlessFinal(err); err != nil {
		return nil, err
	}
	if err != nil {
		p.log.Warn().Err(err).Msg("the rules of the base cannot be read; all checks count as required")
	}
	// A watch must not wait for its own check run.
	checks := slices.DeleteFunc(rules.Required, func(name string) bool { return name == checkrun.NameRun })
	s.required.Store(key, required{checks, s.Env.Now()})
	return checks, nil
}

// admitWatch decides whether the pull request may be watched. A refusal is answered where the watch was requested. A
// standing request, such as an earlier label, gets no answer.
func (s *step) admitWatch(ctx context.Context) error {
	asked := s.pub.state.Watch
	w, seen, err := s.watchable(ctx)
	if err != nil {
		return fmt.Errorf("whether the pull request may be watched: %w", err)
	}
	var events []thread.NewEvent
	add := func(kind thread.Kind, data any) {
		events = append(events, thread.NewEvent{Kind: kind, At: s.pub.env.Now(), Data: data})
	}
	if seen != nil {
		add(thread.KindThread, thread.Change{What: "seen", Snapshot: seen})
	}
	why := w.Refusal()
	if why == "" {
		add(thread.KindWatched, thread.Watched{Rounds: w.Rounds})
		reviews, err := s.pub.standingReviews(ctx)
		if err != nil {
			return fmt.Errorf("the reviews of the pull request: %w", err)
		}
		for _, r := range reviews {
			add(thread.KindFeedback, r)
		}
		return s.pub.lease.Append(ctx, thread.Batch{Events: events})
	}
	add(thread.KindWatched, thread.Watched{Refused: why})
	if !asked.Standing {
		question := asked.Feedback
		question.Word = why
		add(thread.KindQuestion, question)
	}
	return s.pub.lease.Append(ctx, thread.Batch{Events: events})
}

// standingReviews returns the reviews of a user's pull request that request changes and are not in the log. Only the
// last verdict of each reviewer with write permission counts.
func (p *publisher) standingReviews(ctx context.Context) (asked []thread.Feedback, err error) {
	if !p.state.Snapshot.Pull { // the log has all reviews of Pawl's own pull requests
		return nil, nil
	}
	all, err := p.Forge.PullRequests.Reviews(ctx, p.repo(), p.thread.Number)
	if err := unlessFinal(err); err != nil {
		return nil, err
	}
	for _, rv := range requestedChanges(all) {
		known := slices.ContainsFunc(p.state.Feedback, func(r thread.Request) bool {
			return r.Source == policy.FromReview && r.Target.ID == rv.ID && r.Withdrawn == ""
		})
		if known {
			continue
		}
		f, counts, err := p.judgeReview(ctx, rv)
		if err != nil {
			return nil, err
		}
		if counts {
			asked = append(asked, f)
		}
	}
	return asked, nil
}

// requestedChanges returns reviewers' last verdicts if they request changes. Comments are not verdicts.
func requestedChanges(all []forge.Review) (open []forge.Review) {
	for _, rv := range all {
		switch rv.State {
		case "APPROVED", "CHANGES_REQUESTED", "DISMISSED":
			open = slices.DeleteFunc(open, func(old forge.Review) bool { return old.Author.ID == rv.Author.ID })
			open = append(open, rv)
		}
	}
	return slices.DeleteFunc(open, func(rv forge.Review) bool { return rv.State != "CHANGES_REQUESTED" })
}

// judgeReview judges an earlier review that requests changes like a new one, but without its commands.
func (p *publisher) judgeReview(ctx context.Context, rv forge.Review) (f thread.Feedback, counts bool, err error) {
	r := feedback.Remark{Source: policy.FromReview, Actor: rv.Author, Author: rv.Author, App: rv.App.ID, Text: rv.Body, State: "changes_requested", SHA: rv.SHA}
	scene := feedback.Scene{
		Self:        feedback.Self{AppID: p.app.ID, BotID: p.app.BotID, Slug: p.app.Slug},
		AllowedBots: p.Config.Policy.AllowedBots,
		Marked:      thread.Marked(r.Unquoted()),
		Tracked:     true,
		Own:         p.state.Own,
		Looked:      []feedback.Need{feedback.AgentTexts, feedback.Closing},
	}
	j := feedback.Judge(r, scene)
	if j.Needs == feedback.Permission {
		scene.Permission, err = p.Forge.Repositories.Permission(ctx, p.repo(), rv.Author.Login)
		if err != nil {
			return f, false, err
		}
		j = feedback.Judge(r, scene)
	}
	return thread.Feedback{
		Source:     r.Source,
		By:         r.Actor,
		Reason:     j.Reason,
		Standing:   true,
		Severity:   feedback.Severity(r),
		Text:       j.Text,
		Raw:        r.Text,
		Target:     thread.Target{Kind: "review", ID: rv.ID, Node: rv.Node},
		First:      true,
		Generation: p.state.Generation,
		Cause:      p.state.Cause,
		Number:     p.thread.Number,
		URL:        rv.HTMLURL,
		SHA:        rv.SHA,
		MadeAt:     rv.Submitted,
	}, j.Accepted, nil
}

// watchable reads the facts that decide about a watch. seen holds the pull request's current branches; nil if a watch
// is refused.
func (s *step) watchable(ctx context.Context) (w policy.Watchable, seen *thread.Details, err error) {
	st, n := s.pub.state, s.pub.pullNumber()
	if n == 0 {
		return w, nil, nil
	}
	pull, err := s.pub.Forge.PullRequests.Get(ctx, s.pub.repo(), n)
	switch {
	case errors.Is(err, forge.ErrNotFound):
		return w, nil, nil
	case final(err):
		return unreadable("the pull request", err), nil, nil
	case err != nil:
		return w, nil, err
	}
	w = policy.Watchable{
		Pull:    pull.State == "open",
		Fork:    pull.Head.Repo.ID != pull.Base.Repo.ID,
		Bot:     s.pub.strangeBot(pull.Author),
		Branch:  pull.Head.Ref,
		Default: pull.Head.Ref == st.Snapshot.DefaultBranch,
		Rounds:  config.DefaultRounds, // until the file is read
	}
	if w.Refusal() != "" {
		return w, nil, nil
	}
	w.Other, err = s.otherWatch(ctx, pull)
	switch {
	case final(err):
		return unreadable("the branch's other pull requests", err), nil, nil
	case err != nil:
		return w, nil, err
	case w.Other != 0:
		return w, nil, nil
	}
	rules, err := s.pub.Forge.Repositories.Rules(ctx, s.pub.repo(), pull.Head.Ref)
	if err := unlessFinal(err); err != nil {
		return w, nil, err
	}
	// If the rules cannot be read, GitHub still refuses a forbidden push.
	w.Protected = policy.BlocksPush(rules.Kinds, s.pub.Config.GitHub.App.SigningKeyFile != "")
	if rules.Classic {
		w.Protected = true
	}
	if w.Protected {
		return w, nil, nil
	}
	seen = &thread.Details{HeadSHA: pull.Head.SHA, BaseRef: pull.Base.Ref}
	if st.Snapshot.Pull {
		seen.HeadRef, seen.HeadRepoID = pull.Head.Ref, pull.Head.Repo.ID
	}
	return w, seen, s.allowsWatch(ctx, cmp.Or(st.Snapshot.DefaultBranch, pull.Base.Ref), &w)
}

// unreadable refuses a watch because GitHub does not show something.
func unreadable(what string, err error) policy.Watchable {
	return policy.Watchable{Unread: what + ": " + render.Line(secret.Redact(err.Error()), 400)}
}

// otherWatch returns another pull request of the branch whose watch has precedence; 0 for none. Two watches of one
// branch would begin rounds on the same commits.
func (s *step) otherWatch(ctx context.Context, pull forge.Pull) (number int, err error) {
	pulls, err := s.pub.Forge.PullRequests.From(ctx, s.pub.repo(), pull.Head.Ref)
	if err != nil {
		return 0, err
	}
	for _, p := range pulls {
		t := s.pub.thread
		t.Number = p.Number
		if t, err = s.pub.env.Store.Resolve(ctx, t); err != nil {
			return 0, err
		}
		if t == s.pub.thread {
			continue
		}
		_, other, err := thread.Load(ctx, s.pub.env.Store, t)
		if errors.Is(err, thread.ErrDamaged) { // no round begins there
			continue
		}
		if err != nil {
			return 0, err
		}
		if s.pub.state.WatchYields(other) {
			return p.Number, nil
		}
	}
	return 0, nil
}

// strangeBot returns the login of a bot other than Pawl that is not in allowed_bots; else empty.
func (p *publisher) strangeBot(author feedback.Actor) string {
	switch {
	case !author.Bot(), author.ID == p.app.BotID, slices.Contains(p.Config.Policy.AllowedBots, author.ID):
		return ""
	}
	return author.Login
}

// allowsWatch reads the repository's configuration about watches.
func (s *step) allowsWatch(ctx context.Context, branch string, w *policy.Watchable) error {
	file, err := s.pub.Forge.Repositories.File(ctx, s.pub.repo(), config.RepoFile, branch)
	if err := unlessFinal(err); err != nil {
		return err
	}
	repo, problems := config.ParseRepo(config.RepoFile, file.Content)
	e, more := s.pub.Config.Narrow(repo)
	if len(problems)+len(more) > 0 {
		w.Broken = true
		return nil
	}
	w.Rounds = e.WatchRounds
	asked := s.pub.state.Watch
	switch {
	case asked.Source == policy.FromBase:
	case asked.Standing:
		w.LabelIgnored = e.WatchPulls == config.WatchCommanded
	case !feedback.Triggers(asked.Source, feedback.Command{Name: asked.Command}, e.Triggers):
		w.Untriggered = "command"
		if asked.Source == policy.FromLabel {
			w.Untriggered = string(asked.Source)
		}
	}
	return nil
}

// watch is one look at the head of a watched pull request.
type watch struct {
	look
	now    time.Time
	merges bool               // the server merges bases
	next   time.Time          // when to look again; zero to wait for the next event
	more   bool               // the head has more checks than Pawl reads
	own    []policy.HeadCheck // Pawl's check runs
	pull   forge.Pull
	// expected names the checks that the head should have.
	expected []string
}

// run looks at the head, and returns what to log: nothing before its checks have finished.
func (w *watch) run(ctx context.Context) (events []thread.NewEvent, err error) {
	if w.next = w.early(); !w.next.IsZero() {
		return nil, nil
	}
	w.all, w.more, err = w.pub.Forge.Checks.Latest(ctx, w.pub.repo(), w.head)
	if err != nil {
		return nil, err
	}
	w.all = slices.DeleteFunc(w.all, func(c forge.CheckResult) bool {
		if c.App.ID != w.pub.app.ID {
			return false
		}
		w.own = append(w.own, headCheck(c))
		return true
	})
	if err := w.expect(ctx); err != nil {
		return nil, err
	}
	if w.next = w.unfinished(); !w.next.IsZero() {
		return nil, nil
	}
	w.required, err = w.pub.solver.requiredChecks(ctx, w.pub, w.baseRef)
	if err != nil {
		return nil, err
	}
	if err := w.classify(ctx, w.red()); err != nil {
		return nil, err
	}
	if w.again {
		if w.next = policy.AskAgain(w.pub.state.RerunAt(w.head), w.now); !w.next.IsZero() {
			return nil, nil
		}
	}
	if len(w.found) > 0 {
		events = w.events(w.now)
	}
	if seqs := w.passed(); len(seqs) > 0 {
		gone := thread.Withdrawn{Seqs: seqs, Reason: "its checks passed when they ran again"}
		events = append(events, w.add(thread.KindWithdrawn, gone))
	}
	if slices.ContainsFunc(w.found, func(r redCheck) bool { return w.begins(r.RedCheck) }) {
		// The attempt merges a conflicting base anyway.
		return append(events, w.looked(w.facts())), nil
	}
	return w.merge(ctx, events)
}

// merge adds an event that says whether the pull request can be merged.
func (w *watch) merge(ctx context.Context, events []thread.NewEvent) (_ []thread.NewEvent, err error) {
	w.pull, err = w.pub.Forge.PullRequests.GetComputed(ctx, w.pub.repo(), w.pub.pullNumber())
	switch {
	case err != nil:
		return nil, err
	case w.pull.State != "open":
		return nil, nil // its webhook will report that
	case w.pull.Head.SHA != w.head, w.pull.Base.Ref != w.baseRef:
		seen := thread.Details{HeadSHA: w.pull.Head.SHA, BaseRef: w.pull.Base.Ref}
		return append(events, w.add(thread.KindThread, thread.Change{What: "seen", Snapshot: &seen})), nil
	}
	if w.next = w.computing(); !w.next.IsZero() {
		return events, nil
	}
	head := w.facts()
	if reason := w.updateReason(head); reason != "" {
		events = append(events, w.add(thread.KindFeedback, w.pub.baseRequest(reason, w.head, w.pull.HTMLURL)))
	}
	return append(events, w.looked(head)), nil
}

// computing returns when to ask again while GitHub computes whether the pull request can be merged. It is zero if the
// result is known or takes too long.
func (w *watch) computing() time.Time {
	if w.pull.Mergeable != nil {
		return time.Time{}
	}
	return policy.AskAgain(policy.Later(w.pub.state.HeadSince(), w.pub.state.At), w.now)
}

func (w *watch) looked(head policy.Head) thread.NewEvent {
	lack := head.Lacks()
	done := thread.Watched{SHA: w.head, Seen: w.pub.state.Seq, Round: w.pub.state.Facts(w.now).WatchRounds(), Lacks: lack.Why}
	done.Passed = lack.Unstable
	switch since := w.pub.state.HeadSince(); {
	case head.Unread != "":
		done.Again = policy.LookAgainUnread(since, w.now)
	case lack.Unstable && w.hidden():
		done.Again = w.now.Add(time.Minute)
	case lack.Silent, w.ownFails():
		done.Again = policy.LookAgain(since, w.now)
	}
	for _, c := range w.all[:min(len(w.all), maxExpected)] {
		done.Checks = append(done.Checks, c.Name)
	}
	if head.Unread != "" {
		done.Checks = w.pub.state.Watch.Looked.Checks
	}
	return w.add(thread.KindWatched, done)
}

// unread ends a look in which GitHub refused to show something. The head is looked at again later.
func (w *watch) unread(err error) thread.NewEvent {
	return w.looked(policy.Head{Unread: "the head: " + render.Line(secret.Redact(err.Error()), 200)})
}

// hidden reports whether Pawl's own check run may be the only one that has not passed. After the first such look it is
// shown as passed, so the next look can tell.
func (w *watch) hidden() bool {
	fails := func(c policy.HeadCheck) bool { return c.Name == checkrun.NameRun && c.Failed }
	return slices.ContainsFunc(w.own, fails) && !w.passedBefore()
}

// ownFails reports whether one of Pawl's verdicts fails. No event reports when it passes.
func (w *watch) ownFails() bool {
	return slices.ContainsFunc(w.own, func(c policy.HeadCheck) bool { return c.Name != checkrun.NameRun && c.Failed })
}

// passedBefore reports whether all checks passed at the last look at this head, although GitHub counted it as not
// passed.
func (w *watch) passedBefore() bool {
	looked := w.pub.state.Watch.Looked
	return looked.SHA == w.head && looked.Passed
}

// unmerged reports whether GitHub was asked whether the head merges and has not computed it.
func (w *watch) unmerged() bool {
	if w.pull.Number == 0 {
		return false
	}
	return w.pull.Mergeable == nil
}

// maxExpected limits the checks that the next head is expected to have.
const maxExpected = 100

// expect names the checks that the head should have: the last head's or, if there are none, the base's.
func (w *watch) expect(ctx context.Context) error {
	looked := w.pub.state.Watch.Looked
	w.expected = looked.Checks
	switch {
	case len(w.all) > 0, len(w.expected) > 0, looked.SHA == w.head:
		return nil
	}
	base, err := w.pub.baseChecks(ctx, w.baseRef)
	for _, c := range base {
		w.expected = append(w.expected, c.Name)
	}
	return unlessFinal(err)
}

// early returns when to look if it is too early now: after a user's push, or while results come.
func (w *watch) early() time.Time {
	st := w.pub.state
	if quiet := st.Facts(w.now).Watch.QuietUntil(); w.now.Before(quiet) {
		return quiet
	}
	last := st.Red().Last
	switch {
	case !last.IsZero():
		next, _ := quietAt(last, w.now)
		return next
	case st.Watch.Looked.SHA == "", st.Watch.Looked.SHA == w.head: // results from before the watch are not in the log
		return time.Time{}
	}
	return after(w.now, st.HeadSince().Add(appearTime))
}

// after returns at if it is in the future, else zero.
func after(now, at time.Time) time.Time {
	if now.Before(at) {
		return at
	}
	return time.Time{}
}

// unfinished returns the latest time to look if a check runs or has not appeared; zero for now.
func (w *watch) unfinished() time.Time {
	since := w.pub.state.HeadSince()
	runs := slices.ContainsFunc(w.all, func(c forge.CheckResult) bool { return c.Status != completed })
	missing := slices.ContainsFunc(w.expected, func(name string) bool { return !w.shows(name) })
	switch {
	case runs:
		return after(w.now, policy.Later(w.appeared(), w.pub.state.Red().Last).Add(runMost))
	case missing:
		return after(w.now, w.appeared().Add(settleMost))
	case len(w.all) == 0:
		return after(w.now, since.Add(appearTime))
	}
	return time.Time{}
}

// appeared returns the latest of three times: the head's arrival, its first new failure, and Pawl's last rerun of jobs.
func (w *watch) appeared() time.Time {
	st := w.pub.state
	return policy.Later(st.HeadSince(), policy.Later(st.Red().First, st.RerunAt(w.head)))
}

// passed lists the waiting requests of earlier looks at this head, if no check fails because of the work any more. A
// check that GitHub no longer shows has not passed.
func (w *watch) passed() (seqs []int64) {
	class := map[string]feedback.Class{}
	for _, r := range w.pub.state.Checked.On(w.head) {
		class[r.Name] = r.Class
		if ours(r) && !w.shows(r.Name) {
			return nil
		}
	}
	for _, r := range w.found {
		class[r.Name] = r.Class
	}
	for _, c := range w.all {
		if feedback.Failing(c.Conclusion) && class[c.Name] == feedback.Ours {
			return nil
		}
	}
	return w.pub.state.Found(w.head)
}

// shows reports whether GitHub shows a check of that name.
func (w *watch) shows(name string) bool {
	return slices.ContainsFunc(w.all, func(c forge.CheckResult) bool { return c.Name == name })
}

// fails reports whether any check of that name fails. Several checks may share a name.
func (w *watch) fails(name string) bool {
	return slices.ContainsFunc(w.all, func(c forge.CheckResult) bool { return c.Name == name && feedback.Failing(c.Conclusion) })
}

func (w *watch) add(kind thread.Kind, data any) thread.NewEvent {
	return thread.NewEvent{Kind: kind, At: w.now, Data: data}
}

// red lists the checks to classify: failures without a class, and failures because of the work that pass now. Unlike
// State.Red, it knows results from before the watch.
func (w *watch) red() thread.Red {
	red := w.pub.state.Red()
	known := w.pub.state.Checked.On(w.head)
	for _, c := range w.all {
		i := slices.IndexFunc(known, func(r thread.RedCheck) bool { return r.Name == c.Name })
		judge := feedback.Failing(c.Conclusion)
		if i >= 0 {
			judge = ours(known[i]) && !w.fails(c.Name)
		}
		if judge && !slices.Contains(red.Names, c.Name) {
			red.Names = append(red.Names, c.Name)
		}
	}
	return red
}

// updateReason says why the base must be merged, or nothing.
func (w *watch) updateReason(head policy.Head) string {
	switch {
	case !w.merges, w.pub.updateAsked(w.head):
		return ""
	case head.Conflicts:
		return fmt.Sprintf("pull request #%d conflicts with %s", w.pull.Number, w.baseRef)
	case head.Behind:
		return fmt.Sprintf("pull request #%d must be up to date with %s", w.pull.Number, w.baseRef)
	}
	for _, c := range w.found {
		if c.Update {
			return fmt.Sprintf("check run %q: %s", c.Name, c.Reason)
		}
	}
	return ""
}

// facts describes the head for policy.
func (w *watch) facts() policy.Head {
	h := policy.Head{
		Required:  w.required,
		Behind:    w.pull.MergeableState == "behind",
		Mergeable: slices.Contains([]string{"clean", "unstable", "has_hooks"}, w.pull.MergeableState),
		Unstable:  w.pull.MergeableState == "unstable",
		Unmerged:  w.unmerged(),
		Expects:   len(w.expected) > 0,
		Failed:    w.failedHere(),
		Waits:     w.waits(),
	}
	if w.pull.Mergeable != nil {
		h.Conflicts = !*w.pull.Mergeable
	}
	if w.more {
		h.More = forge.MaxResults
	}
	for _, c := range w.all {
		h.Checks = append(h.Checks, headCheck(c))
	}
	for _, c := range w.own { // a verdict on the work, such as an edit loop
		if c.Name != checkrun.NameRun && c.Finished {
			h.Checks = append(h.Checks, c)
		}
	}
	return h
}

func headCheck(c forge.CheckResult) policy.HeadCheck {
	return policy.HeadCheck{Name: c.Name, Finished: c.Status == completed, Failed: !slices.Contains(passing, c.Conclusion)}
}

// passing lists the conclusions with which GitHub lets a required check pass.
var passing = []string{"success", "neutral", "skipped"}

// failedHere reports whether Pawl's own verification of the head failed.
func (w *watch) failedHere() bool {
	for _, a := range slices.Backward(w.pub.state.Attempts) {
		if a.Receipt.Commit == w.head {
			return a.Receipt.Failing()
		}
	}
	return false
}

// waits says that the work on this head waits for a user, or nothing. Questions count, and so does a stop of work that
// a user or reviewer requested. Stopped work on failing checks and conflicts does not: a green head has neither.
func (w *watch) waits() string {
	d := w.pub.state.Decision
	if d == nil {
		return ""
	}
	switch {
	case w.pub.state.DecidedAt.Before(w.pub.state.HeadSince()):
		return ""
	case d.Action == policy.DoStop && w.pub.state.FoundOnly():
		return ""
	case d.Action == policy.DoStop, d.Action == policy.DoAsk:
		return "the work waits for a user: " + d.Reasons.String()
	}
	return ""
}

// mention tells the user who asked for a watch that the pull request is ready, once.
func (p *publisher) mention(ctx context.Context) error {
	st := p.state
	key := thread.ReadyKey(st.Watch.Seq)
	switch {
	case !st.Ready(), st.Open(), p.ended(), st.Acts[key].Done:
		return nil
	case st.Watch.By.Login == "": // watch.pulls began the watch, and only a bot asked for the work
		return nil
	}
	body := checkrun.ReadyMention(st.Watch.By.Login, st.Snapshot.HeadSHA, p.base(), st.Watch.Looked.Round)
	p.logOwnText(ctx, body)
	mark := fmt.Sprintf("<!-- pawl:ready %s %d -->", p.thread, st.Watch.Seq)
	return p.comment(ctx, key, p.pullNumber(), 0, body, mark, thread.Act{})
}

// watchView describes the watch of a thread.
func watchView(st thread.State, now time.Time) checkrun.Watch {
	v := checkrun.Watch{Ended: st.Watch.Ended, Alone: !st.Tracked()}
	if !st.Watched() {
		return v
	}
	v.Rounds, v.Round = st.Watch.Rounds, st.Facts(now).WatchRounds()
	if a, running := st.Running(); running {
		v.Round = max(v.Round, a.Decision.Round)
	}
	if looked := st.Watch.Looked; looked.SHA == st.Snapshot.HeadSHA {
		v.Lacks, v.Again = looked.Lacks, !looked.Again.IsZero()
	}
	v.Ready, v.Passed = st.Ready(), st.Passed()
	return v
}
