package feedback

import (
	"strings"
	"testing"
)

func TestThanksAskForNothing(t *testing.T) {
	nothing := []string{
		"Thanks!", "LGTM", "👍", "🎉🎉", ":tada: :+1:", "+1", "Looks good to me, thank you!", "Great work 🚀", "Approved.", "ok", "Nice, ship it!",
		"Thanks @ada for the quick fix!", "Thank you so much for fixing the parser.", "Thanks for that!", "thx for looking into it 🙏", "> the parser is slow\n\nthanks", "...", "very nice", "@pawl thanks!",
	}
	work := []string{
		"LGTM, but rename turn to rotate", "Thanks! Please add a test.", "Looks good. Can you add a test?", "ok?", "Thanks for the fix, now format it", "Great, `foo` next",
		"thanks for the fix and now rename it", "Thanks, but the port is wrong", "LGTM except the typo", "Thanks in advance for adding a test.",
		"Thanks for the fix rename turn to rotate", "Thanks for fixing only half of it", "Thanks for breaking the build", "LGTM. Port 8080", "It's not good", "lgtm; drop a.txt",
		"> [!IMPORTANT]\n> Rename turn to rotate.", "Nice.\n\n```suggestion\nx\n```", "Approved once a.txt ends in a line feed", "👎 wrong file", "yes", "Thanks for that\nRename foo", "@pawl thanks, and fix the lexer too", "danke", "Thanks for the fix，请改名",
	}
	for i, text := range append(nothing, work...) {
		want := i >= len(nothing)
		for name, r := range map[string]Remark{"comment": comment(text), "approval": review("approved", text), "remark": review("commented", text)} {
			if j := Judge(r, onOwnPull()); j.Accepted != want || j.Needs != "" {
				t.Errorf("%s %q: accepted %t (%s), want %t", name, text, j.Accepted, j.Reason, want)
			}
		}
	}
}

func TestRepeatedWordsAreNotFeedback(t *testing.T) {
	repeated := onOwnPull(func(s *Scene) { s.TakenTexts = []string{"Please add\na test."} })
	judgeAll(t, []judged{
		{"the same words", comment("Please  add a test."), repeated, "for the same words before"},
		{"other words", comment("Please add two tests."), repeated, ""},
		{"the same words about another quotation", comment("> the lexer\n\nPlease add a test."), repeated, ""},
		{"a command", comment("/pawl solve Please add a test."), repeated, ""},
		{"the same words in a review", review("commented", "Please add a test."), repeated, ""},
		{"only a quotation", comment("> Please add a test."), onOwnPull(), "nothing but what it quotes"},
		{"only a quoted mail", comment("On Mon, Mar 2, 2026 at 9:00 AM Bob <b@example.org> wrote:\n\n> Please add a test."), onOwnPull(), "nothing but what it quotes"},
	})
}

func TestCountersInADescriptionAreNotContent(t *testing.T) {
	often := []string{"Port 80. Seats: 41", "Port 80. Seats: 42", "Port 80. Seats: 43", "Port 80. Seats: 44"}
	for _, tc := range []struct {
		was, now string
		known    []string
		why      string
	}{
		{"Fix it.\nUpdated 2026-11-25 09:10 UTC", "Fix it.\nUpdated 2026-11-26 10:11 UTC", nil, "nothing but times"},
		{"_Last updated: Wed, 25 Nov 2026 09:10:11 GMT_", "_Last updated: Thu, 26 Nov 2026 10:11:12 GMT_", nil, "nothing but times"},
		{"Seen on Nov 3, 2026 at 9:05 am", "Seen on Dec 24, 2026 at 11:59 pm", nil, "nothing but times"},
		{"Seen 3 minutes ago", "Seen an hour ago", nil, "nothing but times"},
		{"Generated from 5a1e5a1e", "Generated from 0badc0de", nil, "nothing but times"},
		{"Latest commit: `5a1e5a1`", "Latest commit: `0badc0d`", nil, "nothing but times"},
		{"Fix it.\n\nViews: 41 · Stars: 7", "Fix it.\n\nViews: 42 · Stars: 8", nil, "nothing but times, counters"},
		{"Fix it.\nBuild #41", "Fix it.\nBuild #42", nil, "nothing but times, counters"},
		{"Port 80. Seats: 44", "Port 80. Seats: 45", often, "nothing but times, counters"},
		{"Port 80. Seats: 45", "Port 80. Seats: 46", often, "nothing but times, counters"},
		{"Views: 42", "Views: 41", []string{"Views: 41", "Views: 42"}, "edited back"},

		{"Port 80. Seats: 44", "Port 81. Seats: 45", often, ""},
		{"Port 80. Seats: 44", "Port 80. Seats: 45, and fix the lexer", often, ""},
		{"Views: 42", "Views: 57, and fix the lexer", nil, ""},
		{"Updated 09:10. Fix the parser", "Updated 09:11. Fix the lexer", nil, ""},
		{"Seats: 41", "Seats: 42", nil, ""},
		{"Listen on port 8080", "Listen on port 9090", nil, ""},
		{"Listen on port 9090", "Listen on port 7070", []string{"Listen on port 8080", "Listen on port 8080", "Listen on port 9090"}, ""},
		{"Retry 5 times", "Retry 7 times", []string{"Retry 3 times", "Retry 5 times"}, ""},
		{"Send it at 09:00 every day", "Send it at 08:00 every day", nil, ""},
		{"Deadline: 2026-12-01", "Deadline: 2026-12-15", nil, ""},
		{"Revert commit 5a1e5a1", "Revert commit 0badc0d", nil, ""},
		{"The list of the updated ports: 80, 81", "The list of the updated ports: 80, 82", nil, ""},
		{"Show 3 views of 5 stars", "Show 4 views of 5 stars", nil, ""},
		{"Port # of 5", "Port 5 of #", []string{"Port 5 of 5"}, ""},
		{"the facade", "the defaced", nil, ""},
	} {
		j := Judge(description(tc.was, tc.now), onOwnPull(func(s *Scene) { s.Known = tc.known }))
		if j.Accepted != (tc.why == "") || !strings.Contains(j.Reason, tc.why) {
			t.Errorf("%q → %q: accepted %t, %q; want %q", tc.was, tc.now, j.Accepted, j.Reason, tc.why)
		}
	}
}

func TestCopiesOfPawlsTextsAreRecognised(t *testing.T) {
	const text = "<!-- pawl:status acme/wheel#7 -->\n**Done after 1 attempt: no verify command ran**\n\n- attempt 1 by [mine](https://example.org/1) changed the tree in 12 s\n" +
		"- A review or a comment on this pull request leads to another attempt; `/pawl stop` ends the work.\n<details><summary>What was asked</summary>\n\n```\nPlease add a second line to the file.\n```\n" +
		"The agent's last message:\n\n```text\nDone. I could also make the parser accept an empty input, without an error.\n```\n</details>\n"
	var own Authored
	own.AddOwn(text)
	scene := onOwnPull(func(s *Scene) { s.Own = own.Fresh() })
	plain := strings.TrimPrefix(text, "<!-- pawl:status acme/wheel#7 -->\n")
	for name, copied := range map[string]string{
		"whole":                      plain,
		"with its marker":            text,
		"as shown to readers":        "Done after 1 attempt: no verify command ran\n• attempt 1 by mine changed the tree in 12 s\nA review or a comment on this pull request leads to another attempt; /pawl stop ends the work.\nWhat was asked\nPlease add a second line to the file.",
		"from the middle":            "A review or a comment on this pull request leads to another attempt",
		"cut inside a word":          "Done after 1 attempt: no verify command ran - attempt 1 by mine chan…",
		"cut":                        "A review or a comment on this pull request leads to ...",
		"with another number":        "Done after 7 attempt: no verify command ran - attempt 8 by mine changed the tree in 99 s",
		"below its author's name":    "**pawl[bot]** commented on #7:\n" + plain,
		"below a mention of it":      "@pawl[bot] wrote:\n\n" + plain,
		"below its name":             "Pawl (bot) via GitHub, 09:10:\n" + plain,
		"quoted, with a user's text": "> something of a person\n\n" + plain,
		"wrapped into other lines":   "A review or a comment on this\npull request leads to\nanother attempt",
	} {
		if j := Judge(comment(copied), scene); !strings.Contains(j.Reason, "copy of what Pawl wrote") {
			t.Errorf("%s: %q is not recognised as a copy", name, copied)
		}
	}
	for name, remark := range map[string]string{
		"a request below the copy":    plain + "\nFix that.",
		"a request above the copy":    "Please fix what it says:\n" + plain,
		"a request that names Pawl":   "pawl, please mend this:\n" + plain,
		"a command to Pawl":           "@pawl:\n" + plain,
		"a request in a word":         "Mend:\n" + plain,
		"the request":                 "Please add a second line to the file",
		"a part of the agent's offer": "make the parser accept an empty input, without an error",
		"the agent's whole offer":     "```\nDone. I could also make the parser accept an empty input, without an error.\n```",
		"few words":                   "changed the tree",
		"other words":                 "A review of this comment led to another pull request yesterday.",
		"a request about a quotation": "> " + strings.ReplaceAll(plain, "\n", "\n> ") + "\n\nFix it.",
	} {
		if j := Judge(comment(remark), scene); !j.Accepted {
			t.Errorf("%s: %q is ignored: %s", name, remark, j.Reason)
		}
	}
	if j := Judge(comment("> "+strings.ReplaceAll(plain, "\n", "\n> ")), scene); !strings.Contains(j.Reason, "nothing but what it quotes") {
		t.Errorf("a quotation alone: %s", j.Reason)
	}
}
