package solver

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

const (
	// quiet is how long checks must report nothing to count as finished: dependent jobs start seconds later.
	quiet = 10 * time.Second
	// postponeMost limits how long new results may postpone the look. Our choice.
	postponeMost = 10 * time.Minute
	// settleMost limits the wait for running checks after the first failure. Our choice.
	settleMost = time.Hour
	// maxRead limits the failing checks that are read and reported.
	maxRead = 20
	// maxTests limits the failing tests of a check that a watch compares between rounds.
	maxTests = 200
	// maxNamed limits the failing tests from a job's log.
	maxNamed = 20
	// describedLines limits the text about one check, describedBytes the text about all checks.
	describedLines, describedBytes = 200, 12_000
)

// look reads the failed checks of the last pushed commit once they have finished. It logs their causes and the
// resulting feedback. It reports whether it logged, or when to look again.
func (s *step) look(ctx context.Context) (logged bool, next time.Time, err error) {
	red, now := s.pub.state.Red(), s.pub.env.Now()
	if len(red.Names) == 0 {
		return false, time.Time{}, nil
	}
	if s.pub.ended() {
		return false, time.Time{}, nil
	}
	if !feedback.Triggers(policy.FromCheckRun, feedback.Command{}, effective(s.pub.Config, s.pub.state.Repo).Triggers) {
		return false, time.Time{}, nil
	}
	next, urgent, due := lookAt(red, now)
	if !due {
		return false, next, nil
	}
	l := &look{pub: s.pub, head: s.pub.state.Head, urgent: urgent}
	next, err = l.at(ctx, red)
	switch {
	case final(err): // attempts do not need the look
		l.pub.log.Warn().Err(err).Msg("the commit's failing checks could not be read")
		return false, time.Time{}, nil
	case err != nil:
		return false, time.Time{}, fmt.Errorf("the checks of the commit: %w", err)
	case !next.IsZero():
		return false, next, nil
	}
	now = s.pub.env.Now()
	if l.again {
		if next := policy.AskAgain(s.pub.state.Red().First, now); !next.IsZero() {
			return false, next, nil
		}
	}
	return true, time.Time{}, s.pub.lease.Append(ctx, thread.Batch{Events: l.events(now)})
}

// quietAt reports whether the checks have been silent for `quiet`. If not, next is when they will have been.
func quietAt(last, now time.Time) (next time.Time, is bool) {
	since := now.Sub(last)
	if since >= quiet || since <= -quiet {
		return time.Time{}, true
	}
	return last.Add(quiet), false
}

// lookAt reports whether to look now. If not, next is when to look. urgent means that results kept coming for too long.
func lookAt(red thread.Red, now time.Time) (next time.Time, urgent, is bool) {
	next, is = quietAt(red.Last, now)
	if is {
		return time.Time{}, false, true
	}
	last := red.First.Add(postponeMost)
	if !now.Before(last) {
		return time.Time{}, true, true
	}
	if next.After(last) {
		next = last
	}
	return next, false, false
}

// at reads and classifies failing checks. If checks still run and the look is not urgent, next is when to look again.
func (l *look) at(ctx context.Context, red thread.Red) (next time.Time, err error) {
	l.all, _, err = l.pub.others(ctx, l.head)
	if err != nil {
		return time.Time{}, err
	}
	last := red.First.Add(settleMost)
	runs := func(c forge.CheckResult) bool { return c.Status != completed }
	waits := !l.urgent && l.pub.env.Now().Before(last)
	if waits && slices.ContainsFunc(l.all, runs) {
		return last, nil
	}
	return time.Time{}, l.classify(ctx, red)
}

const completed = "completed"

// others lists other Apps' checks. more reports whether the commit has more checks than can be read.
func (p *publisher) others(ctx context.Context, ref string) (all []forge.CheckResult, more bool, err error) {
	all, more, err = p.Forge.Checks.Latest(ctx, p.repo(), ref)
	return slices.DeleteFunc(all, func(c forge.CheckResult) bool { return c.App.ID == p.app.ID }), more, err
}

// baseChecksFor is how long a base's checks are remembered. Our choice: watches of one base look at the same time.
const baseChecksFor = time.Minute

// remembered holds a base's checks as of a time.
type remembered struct {
	checks []forge.CheckResult
	at     time.Time
}

// baseChecks reads a branch's checks, without their texts.
func (p *publisher) baseChecks(ctx context.Context, branch string) ([]forge.CheckResult, error) {
	key, now := p.thread.Repo()+":"+branch, p.env.Now()
	if known, ok := p.solver.baseChecks.Load(key); ok {
		r := known.(remembered)
		if now.Sub(r.at) < baseChecksFor {
			return r.checks, nil
		}
	}
	checks, _, err := p.others(ctx, branch)
	if err != nil {
		return nil, err
	}
	kept := make([]forge.CheckResult, 0, len(checks))
	for _, c := range checks {
		kept = append(kept, forge.CheckResult{Name: c.Name, HeadSHA: c.HeadSHA, Status: c.Status, Conclusion: c.Conclusion, App: c.App})
	}
	p.solver.baseChecks.Store(key, remembered{kept, now})
	return kept, nil
}

type look struct {
	pub         *publisher
	head        string // the commit
	urgent      bool   // do not wait for running checks
	all         []forge.CheckResult
	start, base []forge.CheckResult
	baseRef     string
	relation    forge.Comparison // of the head and the base; zero before it is read
	actions     *forge.Jobs      // nil before the first use
	found       []redCheck       // oldest first
	reads       int              // checks read so far
	again       bool             // failed jobs were rerun
	required    []string         // of a watched pull request; empty for all
	whole       bool             // all of the pull request counts as the work, not only what Pawl added
	watched     bool             // the look belongs to a watch
}

type redCheck struct {
	thread.RedCheck
	was       string   // its conclusion, if it was read
	head, log []string // from the check, and from its log
	tests     []string // its failing tests
	job       forge.FailedJob
}

// concluded returns the common conclusion of all finished runs of a check, or empty.
func concluded(all []forge.CheckResult, of forge.CheckResult) (conclusion string) {
	other := func(c forge.CheckResult) bool {
		return c.Name != of.Name || c.App.ID != of.App.ID || c.Status != completed
	}
	for i, c := range slices.DeleteFunc(slices.Clone(all), other) {
		if i > 0 && c.Conclusion != conclusion {
			return ""
		}
		conclusion = c.Conclusion
	}
	return conclusion
}

func (l *look) classify(ctx context.Context, red thread.Red) error {
	failing := slices.DeleteFunc(slices.Clone(l.all), func(c forge.CheckResult) bool { return !feedback.Failing(c.Conclusion) })
	slices.SortStableFunc(failing, func(a, b forge.CheckResult) int { return cmp.Compare(a.ID, b.ID) })
	known := l.pub.state.Checked.On(l.head)
	failing = slices.DeleteFunc(failing, func(c forge.CheckResult) bool { // classified failures keep their class
		return !slices.Contains(red.Names, c.Name) && slices.ContainsFunc(known, func(r thread.RedCheck) bool { return r.Name == c.Name })
	})
	for _, name := range red.Names {
		if !slices.ContainsFunc(failing, func(c forge.CheckResult) bool { return c.Name == name }) {
			l.add(redCheck{RedCheck: thread.RedCheck{Name: name}}, l.unfailed(name))
		}
	}
	if err := l.compare(ctx, failing); err != nil {
		return err
	}
	for _, c := range failing {
		if err := l.read(ctx, c); err != nil {
			return err
		}
	}
	return l.repeat(ctx)
}

// unfailed describes a check that failed and no longer fails.
func (l *look) unfailed(name string) feedback.Failure {
	i := slices.IndexFunc(l.all, func(c forge.CheckResult) bool { return c.Name == name })
	switch {
	case i < 0:
		return feedback.Failure{Gone: true}
	case l.all[i].Status != completed:
		return feedback.Failure{Late: true}
	}
	return feedback.Failure{Again: true}
}

// compare reads the checks' conclusions on the base and, if they do not fail there, at the start of the work.
func (l *look) compare(ctx context.Context, failing []forge.CheckResult) (err error) {
	l.baseRef = l.pub.base()
	if len(failing) == 0 || l.baseRef == "" {
		return nil
	}
	l.base, err = l.pub.baseChecks(ctx, l.baseRef)
	if err := unlessFinal(err); err != nil {
		return err
	}
	if !slices.ContainsFunc(failing, l.needsStart) {
		return nil
	}
	began, err := l.began(ctx)
	switch {
	case err != nil:
		return err
	case began == "", len(l.base) > 0 && l.base[0].HeadSHA == began:
		return nil
	}
	l.start, _, err = l.pub.others(ctx, began)
	return unlessFinal(err)
}

// needsStart reports whether a failing check's conclusion at the start of the work decides its class.
func (l *look) needsStart(c forge.CheckResult) bool {
	return !feedback.Failing(concluded(l.base, c)) && !l.pub.state.Checked.Before(c.Name, ours)
}

// began returns the commit where the work began: for a user's pull request, where its branch left the base. It is empty
// if unknown, or if the branch contains the whole base.
func (l *look) began(ctx context.Context) (sha string, err error) {
	if !l.whole {
		return l.pub.state.WorkBegan(), nil
	}
	if err := l.relate(ctx); err != nil || l.relation.BehindBy == 0 {
		return "", err
	}
	return l.relation.MergeBase.SHA, nil
}

// relate compares the head with the base, once.
func (l *look) relate(ctx context.Context) error {
	if l.relation.MergeBase.SHA != "" {
		return nil
	}
	var err error
	l.relation, err = l.pub.Forge.Repositories.Compare(ctx, l.pub.repo(), l.baseRef, l.head)
	return unlessFinal(err)
}

// read classifies a failing check. It reads annotations and logs only if needed.
func (l *look) read(ctx context.Context, c forge.CheckResult) (err error) {
	r := redCheck{RedCheck: thread.RedCheck{Name: c.Name, URL: c.HTMLURL}}
	f := feedback.Failure{
		Conclusion: c.Conclusion,
		Start:      concluded(l.start, c),
		Base:       concluded(l.base, c),
		BaseRef:    l.baseRef,
		WasOurs:    l.pub.state.Checked.Before(c.Name, ours),
		Again:      l.flakyHere(c.Name),
	}
	if f.Base == "success" && feedback.Failing(f.Start) {
		if err := l.relate(ctx); err != nil {
			return err
		}
		f.Behind = l.relation.BehindBy > 0
	}
	if class, _, _ := feedback.Classify(f); class != feedback.Ours || l.reads == maxRead {
		l.add(r, f)
		return nil
	}
	l.reads, r.was = l.reads+1, c.Conclusion
	f.Output = render.Joined("\n\n", strings.TrimSpace(c.Output.Title), strings.TrimSpace(c.Output.Summary), strings.TrimSpace(c.Output.Text), l.annotations(ctx, c))
	r.head = strings.Split(f.Output, "\n")
	if c.App.Slug == "github-actions" && feedback.Outside(f.Output) == "" {
		l.readJob(ctx, c.ID, &r, &f)
	}
	l.add(r, f)
	return ctx.Err()
}

// flakyHere reports whether a check was found flaky on this commit before.
func (l *look) flakyHere(name string) bool {
	return slices.ContainsFunc(l.pub.state.Checked.On(l.head), func(r thread.RedCheck) bool {
		return r.Name == name && r.Class == feedback.Flaky
	})
}

func ours(r thread.RedCheck) bool { return r.Class == feedback.Ours }

func (l *look) add(r redCheck, f feedback.Failure) {
	r.Class, r.Reason, r.Update = feedback.Classify(f)
	if updated := l.pub.state.Checked.Before(r.Name, func(r thread.RedCheck) bool { return r.Update }); updated {
		r.Update = false
	}
	r.Reason = render.Line(r.Reason, 400)
	l.found = append(l.found, r)
}

// readJob reads a job's failing tests and the failed step's last lines, indented so that feedback.Outside reads no
// further failures.
func (l *look) readJob(ctx context.Context, id int64, r *redCheck, f *feedback.Failure) {
	tests := testreport.NewReader()
	var err error
	if l.actions == nil {
		var opened forge.Jobs
		if opened, err = l.pub.Forge.Actions.Open(ctx, l.pub.repo(), l.pub.app); err == nil {
			l.actions = &opened
		}
	}
	if err == nil {
		r.job, err = l.actions.FailedJob(ctx, id, tests)
	}
	if err != nil {
		l.pub.log.Warn().Err(err).Int64("check_run", id).Msg("log not fetched")
		r.head = append(r.head, fmt.Sprintf("(The log of this job could not be fetched: %s)", render.Line(err.Error(), 300)))
		return
	}
	r.URL = cmp.Or(r.job.URL, r.URL)
	r.head = append(r.head, fmt.Sprintf("The step %q failed.", r.job.Step))
	if r.job.Command != "" {
		r.head = append(r.head, "  It ran: "+strings.ReplaceAll(r.job.Command, "\n", "\n          "))
	}
	failures := tests.Report().Failures
	for i, t := range failures {
		if i == maxNamed {
			r.head = append(r.head, "  … and more failing tests")
			break
		}
		r.head = append(r.head, "  Failing: "+strings.Join(strings.Fields(t.Name), " "))
	}
	r.log, f.Log, f.Tests = r.job.Lines, r.job.Lines, len(failures)
	for _, t := range failures[:min(len(failures), maxTests)] {
		r.tests = append(r.tests, render.Line(t.Name, 200))
	}
}

// annotations returns a check run's messages as "path:line: message". Levels other than failure are named.
func (l *look) annotations(ctx context.Context, c forge.CheckResult) string {
	if c.Output.Notes == 0 {
		return ""
	}
	notes, err := l.pub.Forge.Checks.Annotations(ctx, l.pub.repo(), c.ID)
	if err != nil {
		l.pub.log.Warn().Err(err).Int64("check_run", c.ID).Msg("annotations not fetched")
		return fmt.Sprintf("(The annotations of this check run could not be fetched: %s)", render.Line(err.Error(), 300))
	}
	var lines []string
	for _, n := range notes {
		level := ""
		switch n.Level {
		case "warning", "notice":
			level = n.Level + ": "
		}
		message := strings.ReplaceAll(strings.TrimSpace(n.Message), "\n", "\n  ")
		lines = append(lines, fmt.Sprintf("%s:%d: %s%s", strings.Join(strings.Fields(n.Path), " "), n.StartLine, level, message))
	}
	return strings.TrimSpace(strings.Join(lines, "\n"))
}

// repeat reruns each workflow run's failed jobs once. A watch always does, since its rounds wait for the checks.
// Otherwise an open run goes first: a user waits for it, and its push reruns the jobs anyway.
func (l *look) repeat(ctx context.Context) error {
	for i := range l.found {
		r := &l.found[i]
		if r.job.Run == 0 || !l.begins(r.RedCheck) {
			continue
		}
		if !l.repeats(r) {
			l.leaveFlaky(r)
			continue
		}
		if err := l.rerun(ctx, r.job.Run); err != nil {
			return err
		}
		if note := l.pub.state.Acts[thread.RerunKey(r.job.Run)].Note; note != "" {
			r.Reason += "; it was not run again: " + note
		} else {
			l.again = true // GitHub may not have started it
		}
	}
	return nil
}

func (l *look) repeats(r *redCheck) bool {
	if r.job.Attempt > 1 {
		r.Reason += "; it was run again, and failed again"
		return false
	}
	if l.pub.state.Acts[thread.RerunKey(r.job.Run)].Done {
		return true
	}
	if !l.actions.Reruns {
		r.Reason += "; it was not run again, since the App has no actions: write here"
		return false
	}
	if l.watched {
		return true
	}
	return !l.pub.state.Open()
}

// leaveFlaky keeps a failed job from starting work if the job was flaky before and cannot be rerun.
func (l *look) leaveFlaky(r *redCheck) {
	if l.actions.Reruns {
		return
	}
	if l.pub.state.Checked.Before(r.Name, func(c thread.RedCheck) bool { return c.Class == feedback.Flaky }) {
		r.Class, r.Update = feedback.Flaky, false
		r.Reason += ", and it was flaky before"
	}
}

func (l *look) rerun(ctx context.Context, run int64) error {
	head := thread.Act{SHA: l.head}
	find := func() (thread.Act, bool, error) {
		n, err := l.actions.RunAttempt(ctx, run)
		return head, n > 1, err
	}
	return l.pub.act(ctx, thread.RerunKey(run), "", find, func(int64) (thread.Act, error) {
		act, err := head, l.actions.RerunFailed(ctx, run)
		if err != nil && final(err) {
			act.Note, err = render.Line(secret.Redact(err.Error()), 200), nil
		}
		return act, err
	})
}

func (l *look) events(now time.Time) []thread.NewEvent {
	checked := thread.Checked{SHA: l.head}
	var mine []redCheck
	var names, tests []string
	for _, r := range l.found {
		checked.Checks = append(checked.Checks, r.RedCheck)
		if l.begins(r.RedCheck) {
			mine, names, tests = append(mine, r), append(names, fmt.Sprintf("%q", r.Name)), append(tests, r.tests...)
		}
	}
	events := []thread.NewEvent{{Kind: thread.KindChecked, At: now, Data: checked}}
	if len(mine) == 0 {
		return events
	}
	f := thread.Feedback{
		Source:     policy.FromCheckRun,
		SHA:        l.head,
		Number:     cmp.Or(l.pub.state.Pull, l.pub.thread.Number),
		Text:       describeChecks(mine),
		Reason:     fmt.Sprintf("%s failed: %s", policy.Plural(len(mine), "check"), strings.Join(names[:min(len(names), maxRead)], ", ")),
		Generation: l.pub.state.Generation,
		Cause:      l.pub.state.Cause,
		Tests:      tests,
	}
	return append(events, thread.NewEvent{Kind: thread.KindFeedback, At: now, Data: f})
}

// begins reports whether a failure starts work. On a watched pull request only required checks do, if any are known.
func (l *look) begins(r thread.RedCheck) bool {
	if !ours(r) {
		return false
	}
	return len(l.required) == 0 || slices.Contains(l.required, r.Name)
}

// describeChecks describes failing checks for the agent. They share describedBytes equally.
func describeChecks(checks []redCheck) string {
	var b strings.Builder
	read := slices.DeleteFunc(slices.Clone(checks), func(r redCheck) bool { return r.was == "" })
	if more := len(checks) - len(read); more > 0 {
		fmt.Fprintf(&b, "%s more failed and are not shown here.\n\n", policy.Plural(more, "check"))
	}
	for i, r := range read {
		b.WriteString(r.describe((describedBytes - b.Len()) / (len(read) - i)))
	}
	return b.String()
}

// describe returns the beginning of a check's text and the end of its log, in at most `most` bytes.
func (r redCheck) describe(most int) string {
	head := []string{fmt.Sprintf("Check run %q: %s%s", render.Line(r.Name, 200), r.was, render.When(r.URL != "", ", "+r.URL)), ""}
	used := len(head[0])
	keep := func(line string) bool {
		used += len(line) + 1
		return used <= most-80 // with room for the notes
	}
	n := 0
	for ; n < len(r.head) && len(head) < describedLines-2; n++ {
		line := secret.Redact(render.Clean(r.head[n]))
		if !keep(line) {
			break
		}
		head = append(head, line)
	}
	if left := len(r.head) - n; left > 0 {
		head = append(head, fmt.Sprintf("(%s left out)", policy.Plural(left, "line")))
	}
	from := len(r.log)
	for room := describedLines - 2 - len(head); from > 0 && room > 0; room-- {
		if !keep("  " + r.log[from-1]) {
			break
		}
		from--
	}
	if cut := r.job.Cut + from; cut > 0 {
		head = append(head, fmt.Sprintf("  (%s before these are left out)", policy.Plural(cut, "line")))
	}
	for _, line := range r.log[from:] {
		head = append(head, "  "+line)
	}
	return strings.Join(head, "\n") + "\n\n"
}
