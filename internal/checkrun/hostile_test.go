package checkrun

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

var (
	fenceLine  = regexp.MustCompile("^ {0,3}(`{3,}|~{3,})([^`]*)$")
	ownTag     = regexp.MustCompile(`^(?:<details><summary>[^<>]*</summary>|</details>|<!-- pawl:[a-z]+(?: [A-Za-z0-9._/#-]+)? -->)$`)
	ownLink    = regexp.MustCompile(`\[(?:issue|pull request|what the agent says|all details of this thread)\]\(https?://[^()\s]*\)`)
	quotation  = regexp.MustCompile(`^>(?: |$)`)
	suspicious = regexp.MustCompile(`(?i)@[a-z0-9]|#[0-9]|gh-[0-9]|[<>\[\]]|://|www\.\S|\b[0-9a-f]{7,}\b|\\|[|~_]`)
)

// flaws lists the errors in a Markdown text of Pawl: its size, forbidden characters, open blocks, and Markdown outside of
// code.
func flaws(page string) []string {
	var out []string
	if len(page) > maxBytes {
		out = append(out, fmt.Sprintf("%d bytes", len(page)))
	}
	if !utf8.ValidString(page) {
		out = append(out, "invalid UTF-8")
	}
	if i := strings.IndexFunc(page, func(r rune) bool { return r != '\n' && r != '\t' && policy.Invisible(r) }); i >= 0 {
		out = append(out, fmt.Sprintf("control character at %d", i))
	}
	open, folds := "", 0
	for _, l := range strings.Split(page, "\n") {
		l = quotation.ReplaceAllString(l, "")
		m := fenceLine.FindStringSubmatch(l)
		switch {
		case open != "":
			if m != nil && m[1][0] == open[0] && len(m[1]) >= len(open) && strings.TrimSpace(m[2]) == "" {
				open = ""
			}
		case m != nil:
			open = m[1]
		case strings.Contains(strings.ToLower(l), "<!--") && ownTag.MatchString(l), ownTag.MatchString(l):
			folds += strings.Count(l, "<details>") - strings.Count(l, "</details>")
			if folds < 0 || folds > 1 {
				out = append(out, "details do not match at "+l)
			}
		default:
			out = append(out, lineFlaws(l)...)
		}
	}
	if open != "" || folds != 0 {
		out = append(out, fmt.Sprintf("open at the end: fence %q, %d details", open, folds))
	}
	return out
}

// ownPull matches a lead's reference to the pull request that Pawl opened.
var ownPull = regexp.MustCompile(`^(?:\*\*Ready for review: #8\*\*|\*\*Next:\*\* review #8,)`)

// lineFlaws checks a line outside of fences.
func lineFlaws(l string) []string {
	bare, ok := withoutCode(l)
	if !ok {
		return []string{"unclosed inline code in " + l}
	}
	bare = ownLink.ReplaceAllString(bare, "")
	bare = ownPull.ReplaceAllString(bare, "")
	if strings.HasPrefix(bare, "|") {
		if n := strings.Count(bare, "|"); n < 7 || n > 10 { // empty columns are left out
			return []string{fmt.Sprintf("a table row with %d pipes: %s", n, l)}
		}
		bare = strings.ReplaceAll(bare, "|", "")
	}
	if bare == "Closes #7" {
		return nil
	}
	if s := suspicious.FindString(bare); s != "" {
		return []string{fmt.Sprintf("%q outside of code in %s", s, l)}
	}
	return nil
}

// withoutCode removes the inline code of a line as CommonMark finds it.
func withoutCode(l string) (string, bool) {
	var b strings.Builder
	for {
		i := strings.IndexByte(l, '`')
		if i < 0 {
			return b.String() + l, true
		}
		b.WriteString(l[:i])
		n := len(l[i:]) - len(strings.TrimLeft(l[i:], "`"))
		rest, end := l[i+n:], -1
		for j := 0; j < len(rest); {
			if rest[j] != '`' {
				j++
				continue
			}
			run := len(rest[j:]) - len(strings.TrimLeft(rest[j:], "`"))
			if run == n {
				end = j
				break
			}
			j += run
		}
		if end < 0 {
			return "", false
		}
		l = rest[end+n:]
	}
}

// inspect reports the flaws of all texts of one thread.
func inspect(t interface {
	Helper()
	Errorf(string, ...any)
}, f View) {
	t.Helper()
	texts := map[string]string{
		"comment": Comment(f), "status": answer(f, "status", ""), "why": answer(f, "why", ""), "pull": PullBody(f),
		"help": Answer(f, thread.Feedback{Word: f.Request}, f.RequestedBy, nil, false),
	}
	for _, a := range f.Attempts {
		texts["said"] = AnswerComment(a.Attempt)
	}
	for _, c := range Checks(f) {
		texts[c.Name] = c.Summary
		for _, flaw := range checkFlaws(c) {
			t.Errorf("%s: %s", c.Name, flaw)
		}
	}
	for name, text := range texts {
		for _, flaw := range flaws(text) {
			t.Errorf("%s: %s", name, flaw)
		}
	}
}

// checkFlaws lists what GitHub or a reader would reject in a check run.
func checkFlaws(c forge.CheckRun) []string {
	var out []string
	if (c.Status == Completed) != (c.Conclusion != "") ||
		!slices.Contains([]string{Queued, InProgress, Completed}, c.Status) ||
		!slices.Contains([]string{"", Success, Neutral, Failure, ActionRequired}, c.Conclusion) {
		out = append(out, fmt.Sprintf("status %q with conclusion %q", c.Status, c.Conclusion))
	}
	if c.Title == "" || utf8.RuneCountInString(c.Title) > maxTitle || strings.ContainsAny(c.Title, "\n@<>`|#") {
		out = append(out, fmt.Sprintf("title %q", c.Title))
	}
	if c.Summary == "" || len(c.Actions) > 3 || len(c.Annotations) > maxAnnotations {
		out = append(out, "an empty summary, or too many actions or annotations")
	}
	for _, a := range c.Actions {
		if len(a.Label) > 20 || len(a.Description) > 40 || !slices.Contains([]string{"retry", "resume", "raise", "escalate", "stop"}, a.Identifier) {
			out = append(out, fmt.Sprintf("action %+v", a))
		}
	}
	for _, a := range c.Annotations {
		if a.Path == "" || a.StartLine < 1 || a.EndLine < a.StartLine || len(a.Message) > 64_000 {
			out = append(out, fmt.Sprintf("annotation %+v", a))
		}
	}
	return out
}

func TestHostileTextStaysInert(t *testing.T) {
	for name, f := range cases() {
		t.Run(name, func(t *testing.T) { inspect(t, f) })
	}
}

func TestRiskyWordsStayPlainText(t *testing.T) {
	for _, word := range []string{
		"@octocat", "@acme/team", "(@octocat)", "x@y.example", "#12", "GH-12", "acme/widgets#1", "acme/widgets@0f3c9a1", "0f3c9a1be4",
		"https://evil.example", "www.evil.example", "[a](b)", "![a](b)", "<b>", "&commat;x", "&#64;x", "*a*", "_a_", "`", "``", "~~a~~", "$a$",
		"a|b", `a\`, `\`, "---", "===", "1.", "1)", "-", "+", "*", ">", "#", "<!--pawl:end-->", "<!--\u00a0pawl:end -->", ":tada:", "JIRA-7",
		"<!-\u200b- pawl:end -->", "a\u3164\ufe0f<!-- pawl:status -->b", "\u202e", "\x1b]8;;https://evil.example\x07a\x1b]8;;\x07", "\xff\xfe", "a\nb", "a\r\n\r\n# b", "</details>",
	} {
		for _, sentence := range []string{word, "before " + word + " after", word + ".", word + " " + word} {
			for _, s := range []string{render.Prose(sentence), render.Code(sentence), render.Name(sentence)} {
				if bad := append(lineFlaws(s), flaws(s)...); len(bad) > 0 {
					t.Errorf("%q: %v", sentence, bad)
				}
				if strings.Contains(s, "\n") || strings.Contains(s, blockEnd) {
					t.Errorf("%q became %q", sentence, s)
				}
			}
		}
	}
	if got := render.Prose("- a"); !strings.HasPrefix(got, "`-`") {
		t.Errorf("a list may start: %q", got)
	}
}

// everywhere puts two texts into every field that a stranger can set.
func everywhere(a, b string, state uint8, n int, share float64, span int64) View {
	f := hostile()
	states := []State{Running, Waiting, Stopped, Done, Failed, ConfigError, Answered, Planned, State(a)}
	f.PostError = a
	f.State = states[int(state)%len(states)]
	f.Title, f.Request, f.RequestedBy, f.Rule, f.Hint, f.Branch = a, b, a, policy.Rule(b), a, b
	f.Reasons, f.PullURL, f.IssueURL, f.DetailsURL = policy.Reasons{{Text: a}, {Text: b, Until: now}, {Rule: f.Rule, Text: a + b}}, a, b, "https://"+a
	f.Until = now.Add(time.Duration(span))
	f.Attempts = nil
	for i := range min(max(n, 0), 80) {
		f.Attempts = append(f.Attempts, Attempt{
			Effort: b, SimilarKind: a, Similarity: share,
			Waited: time.Duration(span), Duration: time.Duration(span), Continues: a, Chosen: b, Grade: a,
			Attempt: policy.Attempt{Run: 1, Backend: a, Receipt: policy.Receipt{
				N: i + 1, Ending: policy.Ending(a), Outcome: policy.Outcome(b), Detail: a, Final: b, Commit: a, Pushed: true, LeftOut: []string{a, b},
				Edits:  policy.Edits{Operations: n, Files: n, MaxRepeat: int(span), MaxRepeatPath: b},
				Verify: []policy.Verified{{Command: a, Output: b, Exit: n, Known: []string{b, a}}}, CostUSD: &share, Tokens: policy.Tokens{Input: span, Output: span},
				Tests: []string{a, b}, Turns: n, ToolCalls: int(span),
				Rungs: []policy.Rung{{Rung: n, Times: n, Trigger: a, Response: b, Tokens: span, CostUSD: &share, MS: span}},
			}},
		})
	}
	classes := []string{"none", "mild", "moderate", "severe", a}
	f.CooldownUntil = f.Until
	f.Severity = policy.Severity{
		Class: policy.Class(classes[int(state/7)%len(classes)]), Reasons: []string{b}, Grade: share, Cooldown: time.Duration(span),
	}
	f.Stagnation = policy.Stagnant{Kind: b, Similar: n % 4, Escalated: state > 128, Similarity: share, Reasons: []string{a}}
	f.Limit = &AccountLimit{Account: a, Message: b, Consecutive: n, ResetsAt: f.Until}
	f.Feedback = []thread.Request{remark(now.Sub(f.Until), a, b, b, "", a)}
	f.Problems = []thread.Problem{{Path: a, Line: n, Message: b}}
	return f
}

// soup draws texts from pieces with a meaning in Markdown or at GitHub.
func soup() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.SampledFrom([]string{
		" ", " ", "\n", "\n\n", "\t", "a", "word", "7", "@", "#", "`", "```", "~~~", "|", "\\", "<", ">", "<!--", "-->", " pawl:", "end", "begin",
		"</details>", "<details>", "[", "](", ")", "!", "*", "_", "-", "+", ".", ",", ":", "GH-1", "0f3c9a1b", "://", "http", "www.", "&", "/pawl",
		" resume", "\u00a0", "\u200b", "\u202e", "\x1b[", "\x1b", "m", "\r", "\xff", "é", "2026-03-04T14:03:00Z", "…", "\u2028",
	}), rapid.String())
	return rapid.Map(rapid.SliceOfN(piece, 0, 20), func(s []string) string { return strings.Join(s, "") })
}

func TestRandomHostileTextStaysInert(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		a, b := soup().Draw(r, "a"), soup().Draw(r, "b")
		f := everywhere(a, b, rapid.Uint8().Draw(r, "state"), rapid.IntRange(0, 4).Draw(r, "n"), rapid.Float64().Draw(r, "share"),
			rapid.Int64().Draw(r, "span"))
		inspect(r, f)
	})
}

func FuzzTexts(f *testing.F) {
	f.Add("@a", "```\n</details>", uint8(2), 3, 0.9, int64(time.Hour))
	f.Add("<!-- pawl:end -->", strings.Repeat("`", 40), uint8(200), 70, -1.0, int64(-5))
	f.Add("a\\|b", "\x1b[31m\u202e#12 GH-1", uint8(33), 0, 2e300, int64(1)<<62)
	f.Fuzz(func(t *testing.T, a, b string, state uint8, n int, share float64, span int64) {
		inspect(t, everywhere(a, b, state, n, share, span))
	})
}

func TestPullRequestLinksToTheThreadsPage(t *testing.T) {
	for _, name := range []string{"widgets", "issues", "discussions", "GH-1", "x--skip-ci"} {
		f := hostile()
		f.DetailsURL = "https://pawl.example/threads/acme/" + name + "/7"
		if body := PullBody(f); !strings.Contains(body, "\n\n[all details of this thread]("+f.DetailsURL+")\n") {
			t.Errorf("no complete link to the thread:\n%s", body)
		}
	}
}
