package policy

import (
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

// form is a line of the form: a word, for a remark its id, and the words. Code blocks hold none.
var form = regexp.MustCompile(`^(TITLE|QUESTION|LEFT OUT|REMARK (\d{1,19})( DECLINED)?): *(.*)$`)

// maxAnswers bounds the lines of each kind.
const maxAnswers = 50

func ReadAnswer(message string) (a Answer) {
	message = strings.TrimSpace(strings.ReplaceAll(message, "\r\n", "\n"))
	a.Declined = Declining(message)
	var rest []string
	fenced := false
	for _, line := range strings.Split(message, "\n") {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
		}
		m := form.FindStringSubmatch(strings.TrimRight(line, " \t"))
		if fenced || m == nil || m[4] == "" {
			rest = append(rest, line)
			continue
		}
		words := strings.Join(strings.Fields(m[4]), " ")
		switch {
		case m[1] == "TITLE":
			a.Title = words
		case m[1] == "QUESTION":
			a.Question = words
		case m[1] == "LEFT OUT" && len(a.LeftOut) < maxAnswers:
			a.LeftOut = append(a.LeftOut, words)
		case m[2] != "" && len(a.Remarks) < maxAnswers:
			if id, err := strconv.ParseInt(m[2], 10, 64); err == nil {
				a.Remarks = append(a.Remarks, RemarkAnswer{ID: id, Words: words, Declined: m[3] != ""})
			}
		}
	}
	a.Text = strings.TrimSpace(strings.Join(rest, "\n"))
	return a
}

// conventional is a title that begins with a type of Conventional Commits 1.0.
var conventional = regexp.MustCompile(`^(build|chore|ci|docs|feat|fix|perf|refactor|revert|style|test)(\([^()]{1,40}\))?!?: \S`)

// kinds are the types that labels and the first word of a title stand for, in the order in which they are asked.
var kinds = []struct{ kind, says string }{
	{"fix", "bug fix fixes fixed repair mend correct resolve"},
	{"docs", "documentation docs document"},
	{"test", "tests test testing"},
	{"refactor", "refactor refactoring rename simplify"},
	{"feat", "enhancement feature feat add adds added implement support allow"},
}

// Conventional is a title with a type of Conventional Commits: its own, else that of a label or of its first word, else
// chore, which promises nothing.
func Conventional(title string, labels []string) string {
	if conventional.MatchString(title) {
		return title
	}
	first, _, _ := strings.Cut(strings.TrimSpace(title), " ")
	for _, k := range kinds {
		for _, w := range append(slices.Clone(labels), first) {
			if slices.Contains(strings.Fields(k.says), strings.ToLower(strings.TrimRight(w, ":,"))) {
				return k.kind + ": " + title
			}
		}
	}
	return "chore: " + title
}
