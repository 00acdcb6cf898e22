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
	// quiet is how long checks must be silent to count as finished: a dependent job starts seconds later.
	quiet = 10 * time.Second
	// postponeMost is how long results may postpone the look. Our choice.
	postponeMost = 10 * time.Minute
	// settleMost limits the wait for running checks after the first failure. Our choice.
	settleMost = time.Hour
	// maxRead limits the failing checks that are read and reported.
	maxRead = 20
	// maxNamed limits the failing tests from a job's log.
	maxNamed = 20
	// describedLines and describedBytes limit the text about one check and about all checks.
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
	l := &look{pub: s.pub, urgent: urgent}
	next, err = l.at(ctx, red)
	switch {
	case final(err): // attempts do not depend on it
		l.pub.log.Warn().Err(err).Msg("the commit's failing checks could not be read")
		return false, time.Time{}, nil
	case err != nil:
		return false, time.Time{}, fmt.Errorf("the checks of the commit: %w", err)
	case !next.IsZero():
		return false, next, nil
	}
	now = s.pub.env.Now()
	if l.again && now.Before(s.pub.state.Red().First.Add(settleMost)) {
		return false, now.Add(quiet), nil
	}
	return true, time.Time{}, s.pub.lease.Append(ctx, thread.Batch{Events: l.events(now)})
}

// quietAt reports whether the checks have been silent for `quiet`, or when they will have been.
func quietAt(last, now time.Time) (next time.Time, is bool) {
	since := now.Sub(last)
	if since >= quiet || since <= -quiet {
		return time.Time{}, true
	}
	return last.Add(quiet), false
}

// lookAt reports whether to look now, or when. urgent means that results kept coming for too long.
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

// at reads and classifies failing checks. Unless urgent, it returns when running ones need another look.
func (l *look) at(ctx context.Context, red thread.Red) (next time.Time, err error) {
	l.all, err = l.pub.others(ctx, l.pub.state.Head)
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

func (p *publisher) others(ctx context.Context, ref string) ([]forge.CheckResult, error) {
	all, err := p.Forge.Checks.Latest(ctx, p.repo(), ref)
	return slices.DeleteFunc(all, func(c forge.CheckResult) bool { return c.App.ID == p.app.ID }), err
}

type look struct {
	pub         *publisher
	urgent      bool // do not wait for running checks
	all         []forge.CheckResult
	start, base []forge.CheckResult
	baseRef     string
	actions     *forge.Jobs // nil before the first use
	found       []redCheck  // oldest first
	reads       int         // checks read so far
	again       bool        // failed jobs were rerun
}

type redCheck struct {
	thread.RedCheck
	was       string   // its conclusion, if it was read
	head, log []string // from the check, and from its log
	job       forge.FailedJob
}

// concluded returns the common conclusion of all runs of a check, or empty.
func concluded(all []forge.CheckResult, of forge.CheckResult) (conclusion string) {
	other := func(c forge.CheckResult) bool { return c.Name != of.Name || c.App.ID != of.App.ID }
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
	known := l.pub.state.Checked.On(l.pub.state.Head)
	failing = slices.DeleteFunc(failing, func(c forge.CheckResult) bool { // classified failures keep their class
		return !slices.Contains(red.Names, c.Name) && slices.ContainsFunc(known, func(r thread.RedCheck) bool { return r.Name == c.Name })
	})
	for _, name := range red.Names {
		if !slices.ContainsFunc(failing, func(c forge.CheckResult) bool { return c.Name == name }) {
			passed := slices.ContainsFunc(l.all, func(c forge.CheckResult) bool { return c.Name == name && c.Status == completed })
			l.add(redCheck{RedCheck: thread.RedCheck{Name: name}}, feedback.Failure{Again: passed, Gone: !passed})
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

// compare reads the checks' conclusions on the base and, if needed, at the start of the work.
func (l *look) compare(ctx context.Context, failing []forge.CheckResult) (err error) {
	l.baseRef = cmp.Or(l.pub.state.Snapshot.BaseRef, l.pub.state.Snapshot.DefaultBranch)
	if len(failing) == 0 || l.baseRef == "" {
		return nil
	}
	l.base, err = l.pub.others(ctx, l.baseRef)
	if err != nil && !final(err) {
		return err
	}
	began := l.pub.state.WorkBegan()
	if !l.needsStart(began, failing) {
		return nil
	}
	l.start, err = l.pub.others(ctx, began)
	if err != nil && !final(err) {
		return err
	}
	return nil
}

func (l *look) needsStart(began string, failing []forge.CheckResult) bool {
	if began == "" {
		return false
	}
	if len(l.base) > 0 && l.base[0].HeadSHA == began {
		return false
	}
	return slices.ContainsFunc(failing, func(c forge.CheckResult) bool { return !feedback.Failing(concluded(l.base, c)) })
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
	}
	if f.Base == "success" && feedback.Failing(f.Start) {
		compared, err := l.pub.Forge.Repositories.Compare(ctx, l.pub.repo(), l.baseRef, l.pub.state.Head)
		if err != nil && !final(err) {
			return err
		}
		f.Behind = compared.BehindBy > 0
	}
	if class, _, _ := feedback.Classify(f); class != feedback.Ours || l.reads == maxRead {
		l.add(r, f)
		return nil
	}
	l.reads, r.was = l.reads+1, c.Conclusion
	f.Said = render.Joined("\n\n", strings.TrimSpace(c.Output.Title), strings.TrimSpace(c.Output.Summary), strings.TrimSpace(c.Output.Text), l.annotations(ctx, c.ID))
	r.head = strings.Split(f.Said, "\n")
	if c.App.Slug == "github-actions" && feedback.Outside(f.Said) == "" {
		l.readJob(ctx, c.ID, &r, &f)
	}
	l.add(r, f)
	return ctx.Err()
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
}

// annotations returns a check run's messages as "path:line: message". Levels other than failure are named.
func (l *look) annotations(ctx context.Context, id int64) string {
	notes, err := l.pub.Forge.Checks.Annotations(ctx, l.pub.repo(), id)
	if err != nil {
		l.pub.log.Warn().Err(err).Int64("check_run", id).Msg("annotations not fetched")
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

// repeat reruns each workflow run's failed jobs once. It does nothing while a user waits.
func (l *look) repeat(ctx context.Context) error {
	for i := range l.found {
		r := &l.found[i]
		if r.job.Run == 0 || !ours(r.RedCheck) || !l.repeats(r) {
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
	return !l.pub.state.Open()
}

func (l *look) rerun(ctx context.Context, run int64) error {
	head := thread.Act{SHA: l.pub.state.Head}
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
	checked := thread.Checked{SHA: l.pub.state.Head}
	var mine []redCheck
	var names []string
	for _, r := range l.found {
		checked.Checks = append(checked.Checks, r.RedCheck)
		if ours(r.RedCheck) {
			mine, names = append(mine, r), append(names, fmt.Sprintf("%q", r.Name))
		}
	}
	events := []thread.NewEvent{{Kind: thread.KindChecked, At: now, Data: checked}}
	if len(mine) == 0 {
		return events
	}
	f := thread.Feedback{
		Source:     policy.FromCheckRun,
		SHA:        l.pub.state.Head,
		Number:     cmp.Or(l.pub.state.Pull, l.pub.thread.Number),
		Text:       describeChecks(mine),
		Reason:     fmt.Sprintf("%s failed on Pawl's commit: %s", policy.Plural(len(mine), "check"), strings.Join(names[:min(len(names), maxRead)], ", ")),
		Generation: l.pub.state.Generation,
		Cause:      l.pub.state.Cause,
	}
	return append(events, thread.NewEvent{Kind: thread.KindFeedback, At: now, Data: f})
}

// describeChecks describes failing checks for the agent, with equal shares of the bytes.
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

// describe describes a check: its beginning, and the end of its log.
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
