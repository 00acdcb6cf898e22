package checkrun

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// tableRows is how many attempts the check run shows; a run has at most 51.
const tableRows = 12

func run(f View) forge.CheckRun {
	c := check(f, NameRun)
	c.Status, c.Conclusion, c.Title = f.State.shown().status, f.State.shown().conclusion, Headline(f)
	c.Actions = buttons(f)
	if f.State == ConfigError {
		c.Annotations = annotations(f.Problems)
	}
	if a, ok := f.last(); ok && f.State == Done && !f.foreignHead() {
		c.Conclusion = conclusion(a)
	}
	p := &page{}
	if a, ok := f.settled(); ok && f.tellsOfCommit(a) {
		c.Conclusion, c.Title = conclusion(a), verdict(f, a)
		p.sentence(render.When(c.Title != Headline(f), "The title describes this commit. Since then:"))
	}
	p.addLead(f, "")
	p.list(evidence(f)...)
	if len(f.Checked) > 0 {
		p.sentence("Checks of others failed on this commit:")
		p.list(first(f.Checked, tableRows, "check", red)...)
	}
	p.sentence(table(f, tableRows))
	p.fold("Blocked network requests", refused(f))
	p.addDetails(f)
	c.Summary = p.fit()
	return c
}

// conclusion is finished work's conclusion.
func conclusion(a Attempt) string {
	if a.Verification().Verifies() {
		return Success
	}
	return Neutral
}

// settled is the attempt whose work or verification is the head commit's. Later attempts left the commit unchanged,
// so their results do not concern it; one that failed its verification settles nothing.
func (f View) settled() (Attempt, bool) {
	for _, a := range slices.Backward(f.Attempts) {
		switch {
		case !a.ended(), a.Decision.Purpose != policy.ToChange:
			continue
		case a.verifiedHead(f.Head):
			return a, true
		case a.Pushed, a.Failing():
			return Attempt{}, false
		}
	}
	return Attempt{}, false
}

// verifiedHead reports whether the attempt pushed the head commit as finished work, or verified it unchanged. An
// empty head is any.
func (a Attempt) verifiedHead(head string) bool {
	pushed := a.Outcome.Work() && a.Pushed
	again := a.Outcome == policy.NoChange && len(a.Verify) > 0
	if !pushed && !again {
		return false
	}
	return head == "" || cmp.Or(a.Commit, a.Base) == head
}

// foreignHead reports whether no attempt made the head commit or began from it, so that Pawl knows nothing about
// it.
func (f View) foreignHead() bool {
	if f.Head == "" {
		return false
	}
	return !slices.ContainsFunc(f.Attempts, func(a Attempt) bool { return a.Commit == f.Head || a.Base == f.Head })
}

// tellsOfCommit reports whether the check run describes the commit that an attempt settled, and not the thread:
// nothing is in progress or hides the attempt's work.
func (f View) tellsOfCommit(settled Attempt) bool {
	if !f.over() || f.State == ConfigError {
		return false
	}
	return f.State != Failed || settled.Run != f.Run
}

// red describes another App's classified failing check.
func red(c thread.RedCheck) string {
	return cmp.Or(render.Link(render.Label(c.Name), c.URL), render.Code(c.Name)) + " **" + render.Prose(string(c.Class)) + "**: " + render.Prose(c.Reason) +
		render.When(c.Update, "; the branch needs the base's newer commits")
}

// appearance is a state at GitHub.
type appearance struct{ status, conclusion string }

// shown maps states to GitHub's; an unknown one looks like Stopped. A configuration error asks a user to act;
// failure is reserved for Pawl's own failures, so that an operator can search for it.
func (s State) shown() appearance {
	if a, known := appearances[s]; known {
		return a
	}
	return appearances[Stopped]
}

var appearances = map[State]appearance{
	Running:     {InProgress, ""},
	Waiting:     {InProgress, ""},
	Answered:    {Completed, Neutral},
	Planned:     {Completed, Neutral},
	Done:        {Completed, Neutral}, // Success only for verified work, see conclusion
	Failed:      {Completed, Failure},
	ConfigError: {Completed, ActionRequired},
	Stopped:     {Completed, ActionRequired},
}

// Headline is the thread's state, as plain text on one line.
func Headline(f View) string {
	run := f.run()
	switch f.State {
	case Running:
		if f.Run == 0 {
			return "Nothing was asked of Pawl here"
		}
		if n := len(run); n > 0 && !run[n-1].ended() {
			return title(fmt.Sprintf(
				"Attempt %d is running on %s",
				run[n-1].N,
				render.Label(run[n-1].Backend),
			))
		}
		return "Running: between two attempts"
	case Waiting:
		return title(
			"Waiting",
			cmp.Or(f.Rule.Words().Waits, unknown(f.Rule))+
				render.When(!f.Until.IsZero(), ", "+render.Left(f.Now, f.Until)),
		)
	case Done:
		a, ok := f.last()
		if !ok {
			return "Done: nothing is left to do"
		}
		if f.foreignHead() {
			return foreignTitle
		}
		return verdict(f, a)
	case Answered:
		return "Answered"
	case Planned:
		return "Plan waits for /pawl go"
	case Failed:
		return "Pawl itself failed"
	case ConfigError:
		return "Configuration: " + policy.Plural(len(f.Problems), "problem") + ", nothing runs"
	}
	return title("Stopped", stopReason(f)+reset(f))
}

// foreignTitle is the title when Pawl's work is done and the head commit is another one.
const foreignTitle = "Not verified: another user pushed the head commit"

// verdict is finished work's title. Work with a failing command is never called done.
func verdict(f View, a Attempt) string {
	said := render.Subject(a.VerifiedWords(f.Base), maxTitle).String()
	if a.Verification().Done() {
		return title("Done", said)
	}
	return title("Not verified", said)
}

func stopReason(f View) string {
	if f.Rule == policy.RuleLimitBreaker && f.Limit != nil && f.Limit.Consecutive > 1 {
		return fmt.Sprintf("%d usage limits in a row", f.Limit.Consecutive)
	}
	if slices.Contains([]policy.Rule{policy.RuleVerifyBroken, policy.RuleSetupFailed, policy.RuleDeclined, policy.RuleQuestion}, f.Rule) && len(f.Reasons) > 0 {
		return render.Subject(f.Reasons[0].Text, maxTitle).String()
	}
	return cmp.Or(f.Rule.Words().Stops, unknown(f.Rule))
}

// unknown is the name of another version's rule.
func unknown(r policy.Rule) string { return render.Spaced(render.Label(r)) }

// reset says when the limit that stopped a run ends, after a comma.
func reset(f View) string {
	if f.Limit == nil || f.Rule != policy.RuleUsageLimit && f.Rule != policy.RuleLimitBreaker {
		return ""
	}
	return ends(f.Now, f.Limit.ResetsAt, "reset at ")
}

// ends says when something ends or has ended, after a comma; empty if unknown.
func ends(now, at time.Time, ended string) string {
	switch {
	case at.IsZero():
		return ""
	case at.After(now):
		return ", " + render.Left(now, at)
	}
	return ", " + ended + render.Instant(now, at)
}

// evidence are the first screen's reasons, without the lead's.
func evidence(f View) []string {
	if f.State == ConfigError {
		return problems(f.Problems)
	}
	said := Headline(f)
	all := f.reasons()
	if f.State == Done && len(all) > 0 {
		all = all[1:] // the attempt's result
	}
	news := slices.DeleteFunc(all, func(r string) bool { return strings.Contains(said, r) })
	lines := append(reasons(news, 5), render.Prose(f.Like))
	titled := slices.Contains(
		[]policy.Rule{policy.RuleUsageLimit, policy.RuleLimitReset, policy.RuleLimitBreaker},
		f.Rule,
	)
	if f.Limit != nil && f.Limit.Account != "" && !titled {
		lines = append(lines, limit(f))
	}
	if len(f.Attempts) == 1 && f.Attempts[0].Proposal.Command != "" {
		lines = append(lines, "no setup: "+render.Code(f.Attempts[0].Proposal.Command)+" is the usual command for "+render.Code(f.Attempts[0].Proposal.File)+
			"; to have it run, put it under `environment.setup` in `.github/pawl.yml`")
	}
	lines = append(lines, f.inherited())
	lines = append(lines, answerLines(f)...)
	if a, ok := f.last(); ok {
		lines = append(lines, leftOpen(a, f.Rule != policy.RuleQuestion)...)
	}
	return append(lines, render.Joined(" · ", links(f)...))
}

// answerLines link an answer or a plan, and describe the run's other results.
func answerLines(f View) (lines []string) {
	if f.Purpose != policy.ToChange {
		lines = append(
			lines,
			render.Link("what the agent says", f.Said),
			render.When(f.Unsaid != "", "what the agent says could not be posted: "+render.Prose(f.Unsaid)),
		)
		if a, ok := f.last(); ok && len(a.LeftOut) > 0 {
			lines = append(lines, "it was to change nothing; what it changed was thrown away: "+paths(a.LeftOut))
		}
	}
	if f.Before != nil {
		lines = append(lines, "the work before: "+render.Prose(Headline(*f.Before)))
	}
	return lines
}

// refused lists the last attempt's refused hosts, by the setting that would allow them.
func refused(f View) string {
	a, ok := f.last()
	if !ok {
		return ""
	}
	var lines []string
	by, whose := policy.RefusedBy(a.RefusedHosts), map[string]string{
		"network.agent": "the agent",
		"network.judge": "the judge",
	}
	for _, list := range slices.Sorted(maps.Keys(by)) {
		lines = append(lines, fmt.Sprintf(
			"- refused: %s; allow it in %s of the server's configuration, if %s should reach it",
			strings.Join(first(by[list], 5, "host", render.Code), ", "),
			render.Code(list),
			cmp.Or(whose[list], "the commands"),
		))
	}
	return strings.Join(lines, "\n")
}

// leftOpen is what the agent says that it left out and, if it is not the title, its question.
func leftOpen(a Attempt, asks bool) (lines []string) {
	for _, words := range a.NotDone {
		lines = append(lines, "the agent left out: "+render.Prose(words))
	}
	return append(lines, render.When(
		asks && a.Question != "",
		"the agent asks: "+render.Prose(a.Question)+" (answer in a comment)",
	))
}

func links(f View) []string {
	return []string{
		render.Link("issue", f.IssueURL),
		render.Link("pull request", f.PullURL),
		render.Link("everything Pawl knows of this thread", f.DetailsURL),
	}
}

// maxAnnotations is GitHub's limit per request.
const maxAnnotations = 50

const configPath = ".github/pawl.yml"

// annotations marks configuration problems in their files. Messages are plain text there.
func annotations(ps []thread.Problem) []forge.Annotation {
	var out []forge.Annotation
	for _, p := range ps[:min(len(ps), maxAnnotations)] {
		n := max(1, p.Line)
		out = append(out, forge.Annotation{
			Path:      problemPath(p),
			StartLine: n,
			EndLine:   n,
			Level:     "failure",
			Message:   render.Line(p.Message, 1_000),
		})
	}
	return out
}

func problemPath(p thread.Problem) string { return cmp.Or(render.Line(p.Path, 250), configPath) }

func problems(ps []thread.Problem) []string {
	return first(ps, 10, "problem", func(p thread.Problem) string {
		where := problemPath(p)
		if p.Line > 0 {
			where = fmt.Sprintf("%s:%d", where, p.Line)
		}
		return render.Code(where) + " " + render.Prose(p.Message)
	})
}

// NameConfig is the check run on a commit that changes the repository's configuration.
const NameConfig = "pawl/config"

// ConfigFile is that check run: the file's errors at the commit, or that it is gone.
func ConfigFile(sha string, there bool, problems []config.Problem) forge.CheckRun {
	c := forge.CheckRun{
		Name:       NameConfig,
		HeadSHA:    sha,
		ExternalID: "config:" + sha,
		Status:     Completed,
		Conclusion: Success,
	}
	c.Title = configPath + " has no error"
	c.Summary = "This server can work by it. Pawl reads the file from the default branch only: it holds from the merge on."
	switch n := len(problems); {
	case n > 0:
		c.Conclusion = Failure
		c.Title = fmt.Sprintf(
			"%s has %d %s",
			configPath,
			n,
			render.When(n == 1, "error")+render.When(n > 1, "errors"),
		)
		c.Summary = "On the default branch nothing would run with it. Each error is marked at its line:\n"
		var all []thread.Problem
		for _, p := range problems {
			all = append(all, thread.Problem{
				Path:    configPath,
				Line:    p.Line,
				Message: p.Key + render.When(p.Key != "", " ") + p.Message,
			})
		}
		c.Annotations = annotations(all)
		for _, a := range c.Annotations {
			c.Summary += fmt.Sprintf("\n- line %d: %s", a.StartLine, render.Prose(a.Message))
		}
	case !there:
		c.Title = configPath + " is removed"
		c.Summary = "Without the file the server's own configuration holds, and nothing verifies attempts."
	}
	return c
}
