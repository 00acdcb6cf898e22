package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Answer is what an agent's last message says to people: lines of a form that its prompt describes, and the rest. A
// message without such lines is all Text. What it says is the agent's word, and nothing follows from it but what is shown.
type Answer struct {
	Declined string   // why the task cannot be done; only as the first line
	Question string   // what the agent wants to know
	Title    string   // one line for the commit and the pull request
	LeftOut  []string // what of the task was not done, and why
	Remarks  []RemarkAnswer
	Text     string // the message without these lines
}

// RemarkAnswer is what the agent says of one remark on a line.
type RemarkAnswer struct {
	ID       int64  `json:"id"`
	Words    string `json:"words"`
	Declined bool   `json:"declined,omitempty"` // it was not done
}

// Declining is the reason in an agent's last message whose first line declines the task; empty for any other.
func Declining(message string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(message, "\r\n"), "\n")
	if reason, ok := strings.CutPrefix(first, "DECLINED:"); ok {
		return strings.Join(strings.Fields(reason), " ")
	}
	return ""
}

// form is a line of the form: a word, for a remark its id, and the words. Code blocks hold none.
var form = regexp.MustCompile(`^(TITLE|QUESTION|LEFT OUT|REMARK (\d{1,18})( DECLINED)?): *(.*)$`)

// maxAnswers bounds the lines of each kind. Those after it stay in the text.
const maxAnswers = 50

func ReadAnswer(message string) (a Answer) {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	a.Declined = Declining(message)
	lines := strings.Split(message, "\n")
	fenced := fences(lines)
	var rest []string
	for i, line := range lines {
		if fenced[i] || !a.takes(line) {
			rest = append(rest, line)
		}
	}
	a.Text = strings.TrimSpace(strings.Join(rest, "\n"))
	return a
}

// takes reads a line of the form, and reports whether it is one for which there is room.
func (a *Answer) takes(line string) bool {
	m := form.FindStringSubmatch(strings.TrimRight(line, " \t"))
	if m == nil {
		return false
	}
	words := strings.Join(strings.Fields(m[4]), " ")
	if words == "" {
		return false
	}
	switch m[1] {
	case "TITLE":
		a.Title = words
	case "QUESTION":
		a.Question = words
	case "LEFT OUT":
		if len(a.LeftOut) == maxAnswers {
			return false
		}
		a.LeftOut = append(a.LeftOut, words)
	default:
		return a.takesRemark(m[2], m[3] != "", words)
	}
	return true
}

// takesRemark keeps the answer to a remark, and reports whether it did.
func (a *Answer) takesRemark(id string, declined bool, words string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || len(a.Remarks) == maxAnswers {
		return false
	}
	a.Remarks = append(a.Remarks, RemarkAnswer{ID: n, Words: words, Declined: declined})
	return true
}

// fence is the line that opens or closes a block of code, as CommonMark has it, also in a list.
var fence = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")

// fences tells of each line whether it is within a block of code. A block that is not closed is none: an agent that forgot
// its end said what comes behind it.
func fences(lines []string) []bool {
	within := make([]bool, len(lines))
	unclosed := map[byte]int{} // by character: how long a fence is of which no end follows
	for i := 0; i < len(lines); i++ {
		mark := opens(lines[i])
		if mark == "" {
			continue
		}
		if n := unclosed[mark[0]]; n > 0 && len(mark) >= n {
			continue
		}
		body := slices.IndexFunc(lines[i+1:], func(line string) bool { return closes(line, mark) })
		if body < 0 {
			unclosed[mark[0]] = len(mark)
			continue
		}
		for range body + 1 {
			i++
			within[i] = true
		}
	}
	return within
}

// opens is the fence by which a line opens a block of code; empty where it opens none.
func opens(line string) (mark string) {
	m := fence.FindStringSubmatch(line)
	if m == nil {
		return ""
	}
	if m[1][0] == '`' && strings.Contains(m[2], "`") {
		return "" // code within a line
	}
	return m[1]
}

// closes reports whether a line closes the block of code that a fence opened.
func closes(line, mark string) bool {
	m := fence.FindStringSubmatch(line)
	if m == nil || strings.TrimSpace(m[2]) != "" {
		return false
	}
	return strings.HasPrefix(m[1], mark)
}

// conventional is a title that begins with a type of Conventional Commits 1.0.
var conventional = regexp.MustCompile(`^(build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(\([^()]{1,40}\))?!?: \S`)

// types are those that kinds of work have. Any other is a chore, which promises nothing.
var types = map[Category]string{Bug: "fix", Feature: "feat", Docs: "docs", Test: "test", Refactor: "refactor"}

// Conventional is a title with a type of Conventional Commits: its own, else that of the kind of work.
func Conventional(title string, c Category) string {
	if conventional.MatchString(title) {
		return title
	}
	return cmp.Or(types[c], "chore") + ": " + title
}
