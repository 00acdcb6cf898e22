package web

import (
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/solver"
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
func (p *pages) attempt(t solver.Thread, f checkrun.Facts, i int, a checkrun.Attempt) attemptLine {
	l := attemptLine{
		N: a.N, Run: a.Run, Backend: line(a.Backend, maxName), How: how(a), Detail: line(a.Detail, maxReason),
		Waited: dash(a.Waited), Took: dash(a.Duration), Edits: "–",
		Chosen: line(a.Chosen, maxReason), Session: line(a.Session, maxReason), Rungs: climbed(a.Rungs), Grade: line(a.Grade, maxReason),
	}
	l.Ending, l.Class = ending(a)
	if a.Ending != "" || a.Outcome != "" {
		l.Progress = "no"
		if a.Progress {
			l.Progress = "yes"
		}
	}
	if e := a.Edits; e.Operations > 0 {
		l.Edits = fmt.Sprintf("%s in %s, %s on one", number(int64(e.Operations)), plural(e.Files, "file"), number(int64(e.MaxRepeat)))
		l.Path = line(e.MaxRepeatPath, maxName)
	}
	if a.Similarity > 0 {
		s := min(a.Similarity, 1)
		l.Similarity, l.Share, l.Similar = fmt.Sprintf("%.2f", s), int(s*100+0.5), line(a.SimilarKind, 20)
	}
	l.Used, l.UsedTitle = used(a)
	l.Failing, l.MoreFailing = tests(a.Failing)
	l.Known, l.MoreKnown = tests(a.Known)
	if a.Commit != "" {
		l.Commit = short(a.Commit)
		if object.MatchString(a.Commit) {
			l.CommitURL = webURL(p.WebURL + "/" + t.Repo() + "/commit/" + a.Commit)
		}
	}
	for _, path := range a.LeftOut[:min(len(a.LeftOut), 10)] {
		l.LeftOut = append(l.LeftOut, line(path, maxName))
	}
	if i >= len(f.Attempts)-maxTexts {
		l.Verify, l.Output = verified(a.Verify)
		l.Final = text(a.FinalMessage, maxFinal)
	}
	return l
}

// how says with what the attempt was made.
func how(a checkrun.Attempt) string {
	var parts []string
	if a.Effort != "" {
		parts = append(parts, line(a.Effort, 20))
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

// ending is how the attempt ended and, where that says more, what it came to.
func ending(a checkrun.Attempt) (words, class string) {
	e, o := spaced(line(a.Ending, 40)), spaced(line(a.Outcome, 40))
	switch {
	case e == "" && o == "":
		return "running", "running"
	case e == "" || e == o:
		words = o
	case o == "":
		words = e
	default:
		words = e + ", " + o
	}
	switch a.Outcome {
	case "edited":
		return words, "done"
	case "no_change", "interrupted", "cancelled", "usage_limit", "rate_limited", "overloaded":
		return words, "waiting"
	}
	return words, "failed"
}

func verified(v *checkrun.Verify) (sentence, output string) {
	if v == nil {
		return "", ""
	}
	sentence = line(v.Command, maxTitle) + " passed"
	if !v.Passed {
		sentence = fmt.Sprintf("%s failed with exit code %d", line(v.Command, maxTitle), v.ExitCode)
	}
	return sentence, text(v.Output, maxOutput)
}

// verdicts are the two judgements, as their check runs state them.
func verdicts(f checkrun.Facts, now time.Time) []verdict {
	reasons := map[string][]string{checkrun.NameSeverity: f.Severity.Reasons, checkrun.NameStagnation: f.Stagnation.Reasons}
	classes := map[string]string{checkrun.Success: "done", checkrun.Neutral: "waiting", checkrun.Failure: "failed", checkrun.ActionRequired: "failed"}
	var out []verdict
	for _, c := range checkrun.Checks(f)[1:] {
		v := verdict{Name: strings.TrimPrefix(c.Name, checkrun.NameRun+"/"), Text: line(c.Title, 200), Class: classes[c.Conclusion]}
		if c.Status != checkrun.Completed {
			v.Class = "other"
		}
		v.Reasons = shortened(now, reasons[c.Name], maxReasons)
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
	s := "account " + line(l.Account, maxName) + ": "
	if l.Consecutive > 0 {
		s += fmt.Sprintf("%d in a row, ", l.Consecutive)
	}
	switch {
	case l.ResetsAt.IsZero():
		s += "nobody said when it resets"
	case l.ResetsAt.After(now):
		s += checkrun.Left(now, l.ResetsAt)
	default:
		s += "was reset at " + checkrun.Instant(now, l.ResetsAt)
	}
	if l.Message != "" {
		s += ": " + line(l.Message, maxReason)
	}
	return s
}

func problem(p checkrun.Problem) string {
	if p.Line > 0 {
		return fmt.Sprintf("%s:%d: %s", p.Path, p.Line, p.Message)
	}
	return p.Path + ": " + p.Message
}

// short is a commit as people name it.
func short(sha string) string {
	s, _ := head(line(sha, 64), 10)
	return s
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
