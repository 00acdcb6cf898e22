package solver_test

import (
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/goldentest"
	"github.com/pawlbot/pawl/internal/testrig"
)

// isAsRecorded compares the requests to GitHub, and the state that users see there, with testdata/acts/<name>.golden.
func (a *acts) isAsRecorded(name string, prompts ...string) {
	a.T.Helper()
	text := "ASKED OF GITHUB, by object\n\n" + a.asked() + "\nSHOWN BY GITHUB\n" + a.shown() + "\nBRANCHES\n" + a.branches()
	for _, n := range prompts {
		text += "\nPROMPT " + n + "\n" + a.Prompt(n)
	}
	name = strings.ReplaceAll(name, " ", "-")
	goldentest.Compare(a.T, filepath.Join("testdata", "acts", name+".golden"), a.steady(text))
}

// describeChecks matches the relevant parts of a request's body. The fake GitHub's log keeps only the first 4 KiB, so
// the body may be incomplete JSON.
var describeChecks = regexp.MustCompile(`"(name|title|head|base|draft|status|conclusion|content|reviewers|body)":("(?:[^"\\]|\\.)*"?|true|false|\[[^]]*\])`)

// mutation matches the name of a GraphQL request's mutation.
var mutation = regexp.MustCompile(`"query":"\s*mutation[^{]*\{\W*(\w+)`)

// asked returns a line for each writing request to GitHub. Lines are grouped by object, because background requests
// have no fixed order.
func (a *acts) asked() string {
	type act struct{ path, line string }
	var all []act
	for _, q := range a.World.Requests() {
		reads := q.Method == "GET" || strings.HasSuffix(q.Path, "/access_tokens") || strings.Contains(q.Path, ".git/")
		query := strings.HasSuffix(q.Path, "/graphql") && !mutation.MatchString(q.Body)
		if reads || query {
			continue
		}
		path := strings.TrimPrefix(q.Path, "/repos/"+testrig.Repo)
		line, seen := fmt.Sprintf("%s %s %d", q.Method, path, q.Status), map[string]bool{}
		if does := mutation.FindStringSubmatch(q.Body); does != nil {
			line += " " + does[1]
		}
		for _, part := range describeChecks.FindAllStringSubmatch(q.Body, -1) {
			if key := part[1]; !seen[key] {
				seen[key] = true
				line += " " + key + "=" + firstLine(part[2])
			}
		}
		all = append(all, act{path, line + "\n"})
	}
	slices.SortStableFunc(all, func(x, y act) int { return cmp.Compare(x.path, y.path) })
	var text strings.Builder
	for _, each := range all {
		text.WriteString(each.line)
	}
	return text.String()
}

// marks matches the lines of a quoted text before its first words.
var marks = regexp.MustCompile(`^"(?:(?:<!--|\\u003c!--)[^\\]*(?:\\u003e)?|\\n)+`)

// firstLine matches the first line of a quoted text that is not a marker of Pawl's.
func firstLine(quoted string) string {
	line, _, cut := strings.Cut(marks.ReplaceAllString(quoted, `"`), `\n`)
	if cut {
		line += ` …"`
	}
	return line
}

// shown returns the texts that users see on GitHub, without the folded parts of long texts.
func (a *acts) shown() string {
	var text strings.Builder
	for _, i := range a.World.Issues(testrig.Repo) {
		fmt.Fprintf(&text, "\n#%d %q %s %v\n", i.Number, i.Title, i.State, i.Reactions)
		head := ""
		if i.Pull != nil {
			head = i.Pull.HeadSHA
			fmt.Fprintf(&text, "pull request %s → %s, draft %v, reviews asked of %v\n%s\n",
				i.Pull.Head, i.Pull.Base, i.Pull.Draft, i.Pull.Asked, unfolded(i.Body))
		}
		if s := a.state(i.Number); s.Decision != nil {
			fmt.Fprintf(&text, "thread: %s (%s) after %d attempts, %d calls of the agent\n", s.Decision.Action, s.Decision.Rule, len(s.Attempts), a.Calls())
		}
		for _, f := range a.state(i.Number).Feedback {
			fmt.Fprintf(&text, "asked by %s: %s %s\n", f.By.Login, f.Reason, f.Withdrawn)
		}
		for _, t := range a.state(i.Number).Attempts {
			fmt.Fprintf(&text, "attempt %d, since %q: %s %q, brought in %q\n",
				t.N, t.Decision.Reasons.Texts(), t.Receipt.Outcome, t.Receipt.Reasons, t.Receipt.Updated)
		}
		for _, c := range a.state(i.Number).Checked {
			for _, red := range c.Checks {
				fmt.Fprintf(&text, "red check %s of %s: %s: %s\n", red.Name, c.SHA, red.Class, red.Reason)
			}
		}
		for _, c := range a.World.Comments(testrig.Repo, i.Number) {
			if c.ViaApp {
				fmt.Fprintf(&text, "comment: %s\n", unfolded(c.Body))
			}
		}
		for _, m := range a.World.Remarks(testrig.Repo, i.Number) {
			fmt.Fprintf(&text, "remark %d by %s, answers %d, resolved %v: %s\n", m.ID, m.Author, m.Answers, m.Resolved, m.Body)
		}
		for _, c := range a.World.CheckRuns(testrig.Repo) {
			if c.SHA == head && c.App == "pawl" {
				fmt.Fprintf(&text, "check run %s: %s: %s\n", c.Name, cmp.Or(c.Conclusion, c.Status), c.Title)
			}
		}
	}
	return text.String()
}

// unfolded returns a text without its folded parts.
func unfolded(text string) string {
	return strings.TrimSpace(folded.ReplaceAllString(text, "<details>"))
}

var folded = regexp.MustCompile(`(?s)<details>.*?</details>`)

// branches returns the commits of each branch that main lacks, with their changes.
func (a *acts) branches() string {
	var log strings.Builder
	for _, branch := range slices.Sorted(maps.Keys(a.World.Branches(testrig.Repo))) {
		if branch == "main" {
			continue
		}
		commits := a.Git("log", "-p", "-U0", "--cc", "--topo-order", "--format=%n%p by %an <%ae>%n%B", branch, "--not", "--glob=refs/heads/mai[n]")
		fmt.Fprintf(&log, "\n%s:\n%s\n", branch, commits)
	}
	for _, p := range a.World.Pushes(testrig.Repo) {
		fmt.Fprintf(&log, "\npush to %s by %s, forced %v", p.Branch, p.By, p.Forced)
	}
	return log.String() + "\n"
}

// varying matches values that differ between runs: times, ids, commits and addresses.
var varying = []struct {
	form *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`\d{4}-\d\d-\d\d(T| )\d\d:\d\d(:\d\d)?(Z| UTC)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d UTC`), "TIME"},
	{regexp.MustCompile(`\b30000\d{5}\b`), "ID"},
	{regexp.MustCompile(`(#\d+) \d+ -->`), "$1 EVENT -->"},
	{regexp.MustCompile(`\b[0-9a-f]{7,40}\b`), "COMMIT"},
	{regexp.MustCompile(`/\S*/(ctrl|pawl-[a-z]*)`), "FOLDER"},
	{regexp.MustCompile(` · [0-9ms]+ of work| · [0-9]+s of waiting`), ""},
	{regexp.MustCompile(`( attempts?), [0-9]+ (?:s|min)\b`), "$1"},
	{regexp.MustCompile(`127\.0\.0\.1:\d+`), "HOST"},
}

func (a *acts) steady(text string) string {
	for _, v := range varying {
		text = v.form.ReplaceAllString(text, v.with)
	}
	return text
}
