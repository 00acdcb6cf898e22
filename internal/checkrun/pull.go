package checkrun

import (
	"fmt"
	"strings"
)

// BlockBegin and BlockEnd enclose what Pawl manages in a pull request's
// description. Everything outside them belongs to people.
const (
	BlockBegin = "<!-- pawl:begin -->"
	BlockEnd   = "<!-- pawl:end -->"
)

// PullBody returns the description of a pull request: prior with the managed
// block replaced in place, or added at the end where there is none. Everything
// else in prior is kept byte for byte, also where that is more than Pawl would
// write itself; a block that has no room is not written. The block does not
// depend on the time, so it changes only when something happened.
func PullBody(f Facts, prior string) string {
	before, after, found := cutBlock(prior)
	if !found && before != "" {
		before = strings.TrimSuffix(before, "\n\n") + "\n\n"
	}
	room := maxBytes - len(before) - len(after) - len(BlockBegin) - len(BlockEnd) - 3
	block := pullBlock(f, room)
	if block == "" {
		return prior
	}
	// The empty line ends the last HTML block, or a person's text after the end
	// marker would not be read as Markdown.
	return before + BlockBegin + "\n" + block + "\n\n" + BlockEnd + after
}

// cutBlock returns what stands around the managed block. A begin marker without
// its end, which a person may have pasted, encloses nothing.
func cutBlock(s string) (before, after string, found bool) {
	for from := 0; ; {
		i := strings.Index(s[from:], BlockEnd)
		if i < 0 {
			return s, "", false
		}
		end := from + i
		if begin := strings.LastIndex(s[from:end], BlockBegin); begin >= 0 {
			return s[:from+begin], s[end+len(BlockEnd):], true
		}
		from = end + len(BlockEnd)
	}
}

// pullBlock is the managed text, at most max bytes; empty when that is too
// little to say anything.
func pullBlock(f Facts, max int) string {
	p := newPage(f.Now)
	p.sentence(pullLead(f))
	p.list(pullFacts(f)...)
	p.sentence("A review or a comment on this pull request leads to another attempt; `/pawl stop` ends the work.")
	if f.Request != "" || f.Title != "" {
		p.fold("What was asked", asked(f))
	}
	if a, ok := f.last(); ok && a.FinalMessage != "" {
		p.fold("What the agent says it did", fence(a.FinalMessage, maxMessage))
	}
	if max < len(p.parts[0])+200 {
		return ""
	}
	return strings.TrimSuffix(p.fitIn(max), "\n")
}

func pullLead(f Facts) string {
	if f.IsPull {
		return "Pawl works on this pull request."
	}
	if f.Number <= 0 {
		return "Pawl opened this pull request."
	}
	return fmt.Sprintf("Closes #%d", f.Number)
}

// pullFacts are what a reviewer wants to know first.
func pullFacts(f Facts) []string {
	a, ok := f.last()
	if !ok {
		return nil
	}
	lines := []string{fmt.Sprintf("attempt %d by %s", a.N, backend(a, f.Now))}
	if a.Verify != nil {
		how := "passed"
		if !a.Verify.Passed {
			how = "failed with exit code " + number(int64(a.Verify.ExitCode))
		}
		lines = append(lines, "verified by "+code(a.Verify.Command)+": "+how)
	} else {
		lines = append(lines, "not verified: no verify command was run")
	}
	if len(a.LeftOut) > 0 {
		lines = append(lines, "left out, because the paths are protected: "+paths(a.LeftOut))
	}
	return append(lines, totals(f), link("everything Pawl knows of this thread", f.DetailsURL))
}
