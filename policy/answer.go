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
		m := form.FindStringSubmatch(strings.TrimRight(line, " \t"))
		if fenced[i] || m == nil || !a.takes(m[1], m[2], m[3] != "", strings.Join(strings.Fields(m[4]), " ")) {
			rest = append(rest, line)
		}
	}
	a.Text = strings.TrimSpace(strings.Join(rest, "\n"))
	return a
}

// takes takes one line of the form in; one that it has no place for is none.
func (a *Answer) takes(word, id string, declined bool, words string) bool {
	switch {
	case words == "":
		return false
	case word == "TITLE":
		a.Title = words
	case word == "QUESTION":
		a.Question = words
	case word == "LEFT OUT" && len(a.LeftOut) < maxAnswers:
		a.LeftOut = append(a.LeftOut, words)
	case id != "" && len(a.Remarks) < maxAnswers:
		n, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			return false
		}
		a.Remarks = append(a.Remarks, RemarkAnswer{ID: n, Words: words, Declined: declined})
	default:
		return false
	}
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
		open := fence.FindStringSubmatch(lines[i])
		if open == nil || open[1][0] == '`' && strings.Contains(open[2], "`") {
			continue
		}
		if n := unclosed[open[1][0]]; n > 0 && len(open[1]) >= n {
			continue
		}
		end := slices.IndexFunc(lines[i+1:], func(line string) bool {
			m := fence.FindStringSubmatch(line)
			return m != nil && strings.HasPrefix(m[1], open[1]) && strings.TrimSpace(m[2]) == ""
		})
		if end < 0 {
			unclosed[open[1][0]] = len(open[1])
		}
		for ; end >= 0; end-- {
			within[i+1+end] = true
		}
		for i+1 < len(lines) && within[i+1] {
			i++
		}
	}
	return within
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
