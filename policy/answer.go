package policy

import (
	"cmp"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Answer is an agent's last message, split into the lines that the prompt describes and the remaining Text.
type Answer struct {
	Declined string // why the task cannot be done; read from the first line only
	Question string
	Title    string   // one line for the commit and the pull request
	LeftOut  []string // parts of the task that were not done, with the reason
	Remarks  []RemarkAnswer
	Text     string // the message without these lines
}

// RemarkAnswer is the agent's answer to one review comment on a line.
type RemarkAnswer struct {
	ID       int64  `json:"id"`
	Words    string `json:"words"`
	Declined bool   `json:"declined,omitempty"` // the agent did not do it
}

// Declining returns the reason if a message's first line declines the task.
func Declining(message string) string {
	first, _, _ := strings.Cut(strings.TrimLeft(message, "\r\n"), "\n")
	if reason, ok := strings.CutPrefix(first, "DECLINED:"); ok {
		return strings.Join(strings.Fields(reason), " ")
	}
	return ""
}

// form matches a keyword, a remark's id, and the text. ReadAnswer skips lines in code blocks.
var form = regexp.MustCompile(`^(TITLE|QUESTION|LEFT OUT|REMARK (\d{1,18})( DECLINED)?): *(.*)$`)

// maxAnswers limits LEFT OUT and REMARK lines separately. Further lines stay in the text.
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

// takes parses a line of the form. It returns false for other lines and above the limit.
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

func (a *Answer) takesRemark(id string, declined bool, words string) bool {
	n, err := strconv.ParseInt(id, 10, 64)
	if err != nil || len(a.Remarks) == maxAnswers {
		return false
	}
	a.Remarks = append(a.Remarks, RemarkAnswer{ID: n, Words: words, Declined: declined})
	return true
}

// fence matches the start or end of a code block (CommonMark), even in a list.
var fence = regexp.MustCompile("^ *(`{3,}|~{3,})(.*)$")

// fences reports which lines are in a code block. A block that is never closed counts as text.
func fences(lines []string) []bool {
	within := make([]bool, len(lines))
	unclosed := map[byte]int{} // by character: the shortest unclosed fence
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

// opens returns the fence if a line opens a code block.
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

func closes(line, mark string) bool {
	m := fence.FindStringSubmatch(line)
	if m == nil || strings.TrimSpace(m[2]) != "" {
		return false
	}
	return strings.HasPrefix(m[1], mark)
}

var conventional = regexp.MustCompile(`^(build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(\([^()]{1,40}\))?!?: \S`)

// types maps kinds of work to commit types. Other kinds are chores.
var types = map[Category]string{Bug: "fix", Feature: "feat", Docs: "docs", Test: "test", Refactor: "refactor"}

// AreConventional reports whether most of a repository's latest commit subjects follow Conventional Commits.
func AreConventional(subjects []string) bool {
	n := 0
	for _, s := range subjects {
		if conventional.MatchString(s) {
			n++
		}
	}
	return 2*n > len(subjects)
}

// Conventional adds the commit type for a kind of work, unless the title has a type.
func Conventional(title string, c Category) string {
	if conventional.MatchString(title) {
		return title
	}
	return cmp.Or(types[c], "chore") + ": " + title
}
