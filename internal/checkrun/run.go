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

// tableRows is how many attempts the check run shows. Our choice.
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
	if f.watches() {
		f.Watch.show(&c, f)
	} else if f.unwatched() {
		c.Status, c.Conclusion = Completed, Neutral
	} else if a, ok := f.finished(); ok && f.describesCommit(a) {
		c.Conclusion, c.Title = conclusion(a), verdict(f, a)
		p.sentence(render.When(c.Title != Headline(f), "The title describes this commit. Since then:"))
	}
	p.addLead(f, "")
	p.list(evidence(f)...)
	if len(f.Checked) > 0 {
		p.sentence("These checks of other apps failed on this commit:")
		p.list(first(f.Checked, tableRows, "check", red)...)
	}
	p.sentence(table(f, tableRows))
	p.fold("Blocked network requests", refused(f))
	p.addDetails(f)
	c.Summary = p.fit()
	return c
}

func conclusion(a Attempt) string {
	if a.Verification().Verifies() {
		return Success
	}
	return Neutral
}

// finished returns the attempt that pushed or verified the head commit. Later attempts left the commit unchanged, so
// their outcomes do not describe it. Without such an attempt, or after a failed verification, it returns false.
func (f View) finished() (Attempt, bool) {
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

// verifiedHead reports whether the attempt pushed the head commit as finished work, or verified it unchanged. An empty
// head matches any commit.
func (a Attempt) verifiedHead(head string) bool {
	pushed := a.Outcome.Work() && a.Pushed
	again := a.Outcome == policy.NoChange && len(a.Verify) > 0
	if !pushed && !again {
		return false
	}
	return head == "" || cmp.Or(a.Commit, a.Base) == head
}

// foreignHead reports whether no attempt pushed the head commit or began from it. Pawl knows nothing about such a commit.
func (f View) foreignHead() bool {
	if f.Head == "" {
		return false
	}
	return !slices.ContainsFunc(f.Attempts, func(a Attempt) bool { return a.Commit == f.Head || a.Base == f.Head })
}

// describesCommit reports whether the check run describes the finished commit instead of the thread's state. A run in
// progress, a configuration error and a failure of Pawl in the same run are shown instead of the commit.
func (f View) describesCommit(finished Attempt) bool {
	if !f.over() || f.State == ConfigError {
		return false
	}
	if f.State == Stopped && f.stopsWatch() { // the watch's end is about the commit, too
		return false
	}
	return f.State != Failed || finished.Run != f.Run
}

// red describes the verdict on a failing check of another app.
func red(c thread.RedCheck) string {
	return cmp.Or(render.Link(render.Label(c.Name), c.URL), render.Code(c.Name)) + " **" + render.Prose(string(c.Class)) + "**: " + render.Prose(c.Reason) +
		render.When(c.Update, "; the branch needs the base's newer commits")
}

// appearance is how GitHub shows a state.
type appearance struct{ status, conclusion string }

// shown returns a state's appearance; an unknown state looks like Stopped. Only Pawl's own failures get the conclusion
// failure, so that an operator can search for them.
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

// Headline returns the thread's state as plain text on one line.
func Headline(f View) string {
	switch {
	case f.watches():
		return f.Watch.title()
	case f.unwatched():
		return title("Not watched", render.Subject(f.Watch.Ended, maxTitle).String())
	}
	run := f.run()
	switch f.State {
	case Running:
		if f.Run == 0 {
			return "No request for Pawl yet"
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

// foreignTitle is the title of finished work if another user pushed the head commit.
const foreignTitle = "Not verified: another user pushed the head commit"

// verdict returns the title of finished work. Only verified work is called done.
func verdict(f View, a Attempt) string {
	said := render.Subject(a.VerifiedWords(f.Base), maxTitle).String()
	if a.Verification().Done() {
		return title("Done", said)
	}
	return title("Not verified", said)
}

func stopReason(f View) string {
	if f.Rule == policy.RuleStagnation && f.stopsWatch() {
		return "not green after " + policy.Plural(f.Watch.Round, "round")
	}
	if f.Rule == policy.RuleLimitBreaker && f.Limit != nil && f.Limit.Consecutive > 1 {
		return fmt.Sprintf("%d usage limits in a row", f.Limit.Consecutive)
	}
	if slices.Contains([]policy.Rule{policy.RuleVerifyBroken, policy.RuleSetupFailed, policy.RuleDeclined, policy.RuleQuestion, policy.RuleNotGreen}, f.Rule) && len(f.Reasons) > 0 {
		return render.Subject(f.Reasons[0].Text, maxTitle).String()
	}
	return cmp.Or(f.Rule.Words().Stops, unknown(f.Rule))
}

// unknown names a rule of another version of Pawl.
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

// evidence lists the reasons and facts below the lead, without reasons that the title repeats.
func evidence(f View) []string {
	if f.State == ConfigError {
		return problems(f.Problems)
	}
	headline := Headline(f)
	all := f.reasons()
	if f.State == Done && len(all) > 0 {
		all = all[1:] // the attempt's outcome
	}
	news := slices.DeleteFunc(all, func(r string) bool { return strings.Contains(headline, r) })
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
			"; to run it, add it to `environment.setup` in `.github/pawl.yml`")
	}
	lines = append(lines, f.inherited())
	lines = append(lines, answerLines(f)...)
	if a, ok := f.last(); ok {
		lines = append(lines, leftOpen(a, f.Rule != policy.RuleQuestion)...)
	}
	return append(lines, render.Joined(" · ", links(f)...))
}

// answerLines link an answer or a plan, and name the changes that were discarded.
func answerLines(f View) (lines []string) {
	if f.Purpose != policy.ToChange {
		lines = append(
			lines,
			render.Link("what the agent says", f.AnswerURL),
			render.When(f.PostError != "", "the agent's answer could not be posted: "+render.Prose(f.PostError)),
		)
		if a, ok := f.last(); ok && len(a.LeftOut) > 0 {
			lines = append(lines, "the agent should not change anything; its changes were discarded: "+paths(a.LeftOut))
		}
	}
	if f.Before != nil {
		lines = append(lines, "the work so far: "+render.Prose(Headline(*f.Before)))
	}
	return lines
}

// refused lists the hosts that the network policy refused to the last attempt, grouped by the setting that would allow
// them.
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
			"- refused: %s; if %[3]s should reach it, allow it in %[2]s of the server's configuration",
			strings.Join(first(by[list], 5, "host", render.Code), ", "),
			render.Code(list),
			cmp.Or(whose[list], "the commands"),
		))
	}
	return strings.Join(lines, "\n")
}

// leftOpen lists the work that the agent says it left out and, if the title does not show it, its question.
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
		render.Link("all details of this thread", f.DetailsURL),
	}
}

// maxAnnotations is GitHub's limit for one request.
const maxAnnotations = 50

const configPath = ".github/pawl.yml"

// annotations marks the configuration problems in their files. GitHub shows these messages as plain text.
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

// ConfigFile returns the check run NameConfig. It lists the file's errors, or says that the commit removes the file.
func ConfigFile(sha string, there bool, problems []config.Problem) forge.CheckRun {
	c := forge.CheckRun{
		Name:       NameConfig,
		HeadSHA:    sha,
		ExternalID: "config:" + sha,
		Status:     Completed,
		Conclusion: Success,
	}
	c.Title = configPath + " has no error"
	c.Summary = "This server accepts the file. It takes effect when it is merged, because Pawl reads it only from the default branch."
	switch n := len(problems); {
	case n > 0:
		c.Conclusion = Failure
		c.Title = fmt.Sprintf(
			"%s has %d %s",
			configPath,
			n,
			render.When(n == 1, "error")+render.When(n > 1, "errors"),
		)
		c.Summary = "With this file on the default branch, nothing would run. Each error is marked at its line:\n"
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
		c.Summary = "Without the file the server's configuration applies, and no command verifies attempts."
	}
	return c
}
