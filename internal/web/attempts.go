package web

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// attemptLine is one attempt in the table.
type attemptLine struct {
	N, Run            int
	Backend, How      string
	Ending, Class     string
	Detail            string
	Progress          string
	Edits, Path       string
	Similarity        string
	Share             int // of the bar, 0..100
	Similar           string
	Waited, Took      string
	Used              []string
	UsedTitle         string
	Chosen, Session   string
	Failing, Known    []string
	MoreFailing       string
	MoreKnown         string
	Rungs             []rungLine
	Grade             string
	Commit, CommitURL string
	LeftOut           []string
	Verify, Output    string
	Final             string
}

// object is the name of a git object, SHA-1 or SHA-256.
var object = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// attempt is the i-th attempt of the thread as the table shows it.
func (p *pages) attempt(t thread.ID, f checkrun.Facts, i int, a checkrun.Attempt) attemptLine {
	l := attemptLine{
		N: a.N, Run: a.Run, Backend: text.Line(a.Backend, maxName), How: how(a), Detail: text.Line(a.Detail, maxReason),
		Waited: text.Dash(a.Waited), Took: text.Dash(a.Duration), Edits: "–",
		Chosen: text.Line(a.Chosen, maxReason), Session: text.Line(a.Continues, maxReason), Rungs: rungLines(a.Rungs), Grade: text.Line(a.Grade, maxReason),
	}
	l.Ending, l.Class = a.Result(), endingClass(a)
	if a.Ending != "" || a.Outcome != "" {
		l.Progress = "no"
		if a.Progress() {
			l.Progress = "yes"
		}
	}
	if e := a.Edits; e.Operations > 0 {
		l.Edits = fmt.Sprintf("%s in %s, %s on one", number(int64(e.Operations)), plural(e.Files, "file"), number(int64(e.MaxRepeat)))
		l.Path = text.Line(e.MaxRepeatPath, maxName)
	}
	if a.Similarity > 0 {
		s := min(a.Similarity, 1)
		l.Similarity, l.Share, l.Similar = fmt.Sprintf("%.2f", s), int(s*100+0.5), text.Line(a.SimilarKind, 20)
	}
	l.Used, l.UsedTitle = used(a)
	l.Failing, l.MoreFailing = tests(a.Tests)
	l.Known, l.MoreKnown = tests(a.Known())
	if a.Pushed {
		l.Commit = text.Head(text.Line(a.Commit, 64), 10)
		if object.MatchString(a.Commit) {
			l.CommitURL = text.URL(p.WebURL + "/" + t.Repo() + "/commit/" + a.Commit)
		}
	}
	for _, path := range a.LeftOut[:min(len(a.LeftOut), 10)] {
		l.LeftOut = append(l.LeftOut, text.Line(path, maxName))
	}
	if i >= len(f.Attempts)-maxTexts {
		l.Verify, l.Output = verified(a.Verification())
		l.Final = text.Block(a.Final, maxFinal)
	}
	return l
}

// how says with what the attempt was made.
func how(a checkrun.Attempt) string {
	var parts []string
	if a.Effort != "" {
		parts = append(parts, text.Line(a.Effort, 20))
	}
	if a.Rung > 0 {
		parts = append(parts, fmt.Sprintf("rung %d", a.Rung))
	}
	if a.Escalated {
		parts = append(parts, "more effort")
	}
	if a.Different {
		parts = append(parts, "different approach")
	}
	return strings.Join(parts, ", ")
}

// endingClass is the style of how an attempt ended; a word of ours, never one of the log.
func endingClass(a checkrun.Attempt) string {
	if a.Ending == "" && a.Outcome == "" {
		return "running"
	}
	switch a.Outcome {
	case "edited":
		return "done"
	case "no_change", "interrupted", "cancelled", "usage_limit", "rate_limited", "overloaded":
		return "waiting"
	default:
		return "failed"
	}
}

func verified(v *policy.Verified) (sentence, output string) {
	if v == nil {
		return "", ""
	}
	sentence = text.Line(v.Command, maxTitle) + " passed"
	if !v.Passed {
		sentence = fmt.Sprintf("%s failed with exit code %d", text.Line(v.Command, maxTitle), v.Exit)
	}
	return sentence, text.Block(v.Output, maxOutput)
}

// verdicts are the two judgements, as their check runs state them.
func verdicts(f checkrun.Facts) []verdict {
	reasons := map[string][]string{checkrun.NameSeverity: f.Severity.Reasons, checkrun.NameStagnation: f.Stagnation.Reasons}
	classes := map[string]string{checkrun.Success: "done", checkrun.Neutral: "waiting", checkrun.Failure: "failed", checkrun.ActionRequired: "failed"}
	var out []verdict
	for _, c := range checkrun.Checks(f)[1:] {
		v := verdict{Name: strings.TrimPrefix(c.Name, checkrun.NameRun+"/"), Text: text.Line(c.Title, 200), Class: classes[c.Conclusion]}
		if c.Status != checkrun.Completed {
			v.Class = "other"
		}
		v.Reasons = shortened(reasons[c.Name], maxReasons)
		out = append(out, v)
	}
	return out
}

// limit is one sentence on the limit that the last attempt's account hit.
func limit(f checkrun.Facts, now time.Time) string {
	l := f.Limit
	if l == nil {
		return ""
	}
	s := "account " + text.Line(l.Account, maxName) + ": "
	if l.Consecutive > 0 {
		s += fmt.Sprintf("%d in a row, ", l.Consecutive)
	}
	s += text.Reset(now, l.ResetsAt)
	if l.Message != "" {
		s += ": " + text.Line(l.Message, maxReason)
	}
	return s
}

func problem(p thread.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// brief is a count in three digits: 950, 12k, 1.4M.
func brief(n int64) string {
	switch {
	case n < 1_000:
		return number(n)
	case n < 1_000_000:
		return fmt.Sprintf("%dk", (n+500)/1_000)
	}
	return fmt.Sprintf("%.1fM", float64(n)/1_000_000)
}

// Bounds of the lists in one attempt's row.
const (
	maxTests = 8
	maxRungs = 8
)

// used are the parts of what an attempt used, and the exact numbers; both are
// empty where nothing is known.
func used(a checkrun.Attempt) (parts []string, exact string) {
	if u := a.Tokens; u.Input > 0 || u.Output > 0 {
		parts = append(parts, fmt.Sprintf("%s in (%s cached)", brief(u.Input), brief(u.CachedInput)), brief(u.Output)+" out")
		exact = fmt.Sprintf("%s tokens in, of which %s cached, %s out", number(u.Input), number(u.CachedInput), number(u.Output))
	}
	if a.CostUSD != nil {
		parts = append(parts, text.Dollars(*a.CostUSD))
	}
	if a.Turns > 0 {
		parts = append(parts, plural(a.Turns, "turn"))
	}
	if a.ToolCalls > 0 {
		parts = append(parts, plural(a.ToolCalls, "tool call"))
	}
	return parts, exact
}

// rungLine is one recovery of an attempt.
type rungLine struct{ Name, Text, Helped, Class string }

// rungLines are the recoveries of an attempt with what they cost.
func rungLines(all []policy.Rung) []rungLine {
	var lines []rungLine
	for i, r := range all {
		if i == maxRungs {
			return append(lines, rungLine{Name: "and " + plural(len(all)-maxRungs, "more recovery")})
		}
		l := rungLine{Name: fmt.Sprintf("rung %d", r.Rung), Text: text.Line(r.Trigger, maxReason) + " → " + text.Line(r.Response, maxReason)}
		if r.Times > 1 {
			l.Name += fmt.Sprintf(", %d ×", r.Times)
		}
		l.Helped, l.Class = "did not help", "failed"
		if r.Recovered {
			l.Helped, l.Class = "helped", "done"
		}
		var cost []string
		if r.Tokens > 0 {
			cost = append(cost, brief(r.Tokens)+" tokens")
		}
		if r.CostUSD != nil {
			cost = append(cost, text.Dollars(*r.CostUSD))
		}
		if took := r.Took(); took >= time.Second {
			cost = append(cost, text.Span(took))
		}
		if len(cost) > 0 {
			l.Helped += " (" + strings.Join(cost, ", ") + ")"
		}
		lines = append(lines, l)
	}
	return lines
}

// tests are the names of tests, the first of them, and how many more there are.
func tests(names []string) (shown []string, more string) {
	for _, n := range names[:min(len(names), maxTests)] {
		shown = append(shown, text.Line(n, maxName))
	}
	if rest := len(names) - maxTests; rest > 0 {
		more = fmt.Sprintf("and %s more", number(int64(rest)))
	}
	return shown, more
}
