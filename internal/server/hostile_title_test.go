package server_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
)

// hostileTitle tries everything that one line of text can do on GitHub and in CI systems: close issues, mention users,
// add references and links, skip checks, colour a terminal and reverse the reading direction.
const hostileTitle = "Fixes #901, closes GH-902, resolves other/repo#903 @victim @acme/owners see https://evil.example/x www.evil.example " +
	"other/repo@0123456789abcdef0123456789abcdef01234567 " +
	"[skip ci] [ci skip] [no ci] [skip actions] [actions skip] [skip azp] [skip travis] [skip netlify] [CF-Pages-Skip] [skip release] ***NO_CI*** --skip-ci " +
	"skip-checks: true <!-- pawl:begin --> <b>x</b> `y` \u202eesrever\u202c \u200bz \x1b[31mred"

// does matches the active parts of hostileTitle.
var does = regexp.MustCompile(`#90[123]|(?i:gh-902)|@(?:victim|acme|0123)|evil\.example|(?:^|[^/])\b0123456789abcdef0123456789abcdef01234567|(?i:\[[^\]\n]*(?:ci|skip|actions)[^\]\n]*\])|\*\*\*NO_CI|--skip-ci|[\x00-\x08\x0b-\x1f\x{200b}-\x{200f}\x{202a}-\x{202e}\x{2066}-\x{2069}]`)

// shown removes inert parts: text that GitHub shows as code, and options in a commit message.
func shown(s string) string { return strings.ReplaceAll(code.ReplaceAllString(s, ""), "--skip-ci", "") }

// code matches text that GitHub does not interpret: fenced blocks and spans.
var code = regexp.MustCompile("(?ms)^(```+|~~~+)[^\n]*\n.*?^(```+|~~~+)\\s*?$|(`+)[^`\n]+(`+)")

func TestHostileTitleIsInertInEveryOutput(t *testing.T) {
	t.Parallel()
	if !does.MatchString(hostileTitle) || len(does.FindAllString(hostileTitle, -1)) < 20 {
		t.Fatalf("the control finds %q", does.FindAllString(hostileTitle, -1))
	}
	for name, tc := range map[string]struct{ title, message string }{
		"by a stranger who opened the issue": {hostileTitle, "I did it."},
		"by the agent":                       {"A second line", "TITLE: " + strings.ReplaceAll(hostileTitle, "\x1b", "") + "\nI did it."},
		"in the agent's question":            {"A second line", "QUESTION: " + strings.ReplaceAll(hostileTitle, "\x1b", "")},
		"in the agent's refusal":             {"A second line", "DECLINED: " + strings.ReplaceAll(hostileTitle, "\x1b", "")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			act := "echo two >> a.txt"
			if strings.HasPrefix(tc.message, "DECLINED") {
				act = ":"
			}
			r.Agent(testrig.Saying(t, act, tc.message), "stream: codex")
			r.Start()
			n, err := r.World.OpenIssue(testrig.Repo, testrig.Reader, tc.title, "Please add a second line to a.txt.")
			r.Must(err)
			r.Must(r.Commenting(n, testrig.Writer, "/pawl solve")())
			r.Ending(n)
			outputs := map[string]string{}
			for _, p := range r.World.Pushes(testrig.Repo) {
				log, err := r.World.Git(t.Context(), testrig.Repo, "log", "--format=%B", "main.."+p.Branch)
				r.Must(err)
				outputs["the name of a branch"], outputs["the commits of "+p.Branch] = p.Branch, log
				if p.Branch != fmt.Sprintf("pawl/issue-%d", n) {
					t.Errorf("pushed to %s", p.Branch)
				}
			}
			for _, p := range r.World.Pulls(testrig.Repo) {
				outputs["the title of the pull request"] = p.Title
				outputs["its description"] = strings.NewReplacer("evil.example", "", "0123456789abcdef", "").Replace(p.Body) // raw, because it may become a commit message, where links are inert
			}
			for _, c := range r.World.CheckRuns(testrig.Repo) {
				outputs["the title of check run "+c.Name], outputs["the text of check run "+c.Name] = c.Title, shown(c.Summary)
			}
			for i, c := range r.World.Comments(testrig.Repo, n) {
				if c.ViaApp {
					outputs[fmt.Sprint("comment ", i)] = shown(c.Body)
				}
			}
			for where, text := range outputs {
				if found := does.FindAllString(text, -1); len(found) > 0 {
					t.Errorf("%s contains %q:\n%s", where, found, text)
				}
			}
			if len(outputs) == 0 || !strings.HasPrefix(tc.message, "DECLINED") && len(outputs) < 6 {
				t.Errorf("only %d outputs: %q", len(outputs), outputs)
			}
		})
	}
}
