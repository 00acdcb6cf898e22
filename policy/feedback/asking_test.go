package feedback

import (
	"strings"
	"testing"
)

func TestThanksAndBareApprovalsAskForNothing(t *testing.T) {
	for _, text := range []string{
		"Thanks!", "LGTM", "👍", "🎉🎉", ":tada: :+1:", "+1", "Looks good to me, thank you!", "Great work 🚀", "Approved.", "ok", "Nice, ship it!",
		"Thanks @ada for the quick fix!", "Thank you so much for fixing the parser.", "> the parser is slow\n\nthanks", "...", "very nice", "@pawl thanks!",
	} {
		for name, r := range map[string]Remark{"comment": comment(text), "approval": review("approved", text), "remark": review("commented", text)} {
			if j := Judge(r, onOwnPull()); j.Accepted || j.Needs != "" {
				t.Errorf("%s %q: %q; want it ignored", name, text, j.Reason)
			}
		}
	}
	for _, text := range []string{
		"LGTM, but rename turn to rotate", "Thanks! Please add a test.", "Looks good. Can you add a test?", "ok?", "Thanks for the fix, now format it", "Great, `foo` next",
		"thanks for the fix and now rename it", "Nice.\n\n```suggestion\nx\n```", "Approved once a.txt ends in a line feed", "👎 wrong file", "yes", "Thanks for that\nRename foo", "@pawl thanks, and fix the lexer too", "danke",
	} {
		for name, r := range map[string]Remark{"comment": comment(text), "approval": review("approved", text), "remark": review("commented", text)} {
			if j := Judge(r, onOwnPull()); !j.Accepted {
				t.Errorf("%s %q: %q; want it to ask for work", name, text, j.Reason)
			}
		}
	}
}

func TestWordsThatWereWorkedOnAreNoNewFeedback(t *testing.T) {
	said := onOwnPull(func(s *Scene) { s.Said = []string{"Please add\na test."} })
	judgeAll(t, []judged{
		{"the same words", comment("Please  add a test."), said, "for the same words before"},
		{"other words", comment("Please add two tests."), said, ""},
		{"the same words about another quotation", comment("> the lexer\n\nPlease add a test."), said, ""},
		{"a command", comment("/pawl solve Please add a test."), said, ""},
		{"the same words in a review", review("commented", "Please add a test."), said, ""},
		{"nothing but a quotation", comment("> Please add a test."), onOwnPull(), "nothing but what it quotes"},
		{"nothing but a quoted mail", comment("On Mon, Mar 2, 2026 at 9:00 AM Bob <b@example.org> wrote:\n\n> Please add a test."), onOwnPull(), "nothing but what it quotes"},
	})
}

func TestWhatMovesByItselfInADescriptionIsNoContent(t *testing.T) {
	for _, tc := range []struct {
		was, now string
		known    []string
		why      string
	}{
		{"Fix it.\nUpdated 2026-11-25 09:10 UTC", "Fix it.\nUpdated 2026-11-26 10:11 UTC", nil, "nothing but times"},
		{"Seen on Nov 3, 2026 at 9:05 am", "Seen on Dec 24, 2026 at 11:59 pm", nil, "nothing but times"},
		{"Seen 3 minutes ago", "Seen 1 hour ago", nil, "nothing but times"},
		{"Build 5a1e5a1e of main", "Build 0badc0de of main", nil, "nothing but times"},
		{"Views: 41", "Views: 42", nil, ""},
		{"Views: 42", "Views: 57", []string{"Views: 41", "Views: 42"}, "nothing but times, counters"},
		{"Views: 42", "Views: 57, and fix the lexer", []string{"Views: 41", "Views: 42"}, ""},
		{"Views: 42", "Views: 41", []string{"Views: 41", "Views: 42"}, "edited back"},
		{"Retry 3 times", "Retry 5 times", []string{"Retry 3 times"}, ""},
		{"Updated 09:10. Fix the parser", "Updated 09:11. Fix the lexer", nil, ""},
		{"the facade", "the defaced", nil, ""}, // no hash has only letters
	} {
		j := Judge(description(tc.was, tc.now), onOwnPull(func(s *Scene) { s.Known = tc.known }))
		if j.Accepted != (tc.why == "") || !strings.Contains(j.Reason, tc.why) {
			t.Errorf("%q → %q: accepted %t, %q; want %q", tc.was, tc.now, j.Accepted, j.Reason, tc.why)
		}
	}
}

func TestCopiesOfPawlsTextsAreKnownAsItsOwn(t *testing.T) {
	const text = "<!-- pawl:status acme/wheel#7 -->\n**Done after 1 attempt: no verify command ran**\n\n- attempt 1 by [mine](https://example.org/1) changed the tree in 12 s\n" +
		"- A review or a comment on this pull request leads to another attempt; `/pawl stop` ends the work.\n<details><summary>What was asked</summary>\n\n```\nPlease add a second line to the file.\n```\n</details>\n"
	var own Authored
	own.AddOwn(text)
	scene := onOwnPull(func(s *Scene) {
		s.Own, s.Known = own.Fresh(), []string{"Please add a second line to the file. It is needed."}
	})
	plain := strings.TrimPrefix(text, "<!-- pawl:status acme/wheel#7 -->\n")
	for name, copied := range map[string]string{
		"whole":                    plain,
		"with its marker":          text,
		"as a reader sees it":      "Done after 1 attempt: no verify command ran\n• attempt 1 by mine changed the tree in 12 s\nA review or a comment on this pull request leads to another attempt; /pawl stop ends the work.",
		"from the middle":          "A review or a comment on this pull request leads to another attempt",
		"cut within a word":        "Done after 1 attempt: no verify command ran - attempt 1 by mine chan…",
		"cut":                      "A review or a comment on this pull request leads to ...",
		"with another number":      "Done after 7 attempt: no verify command ran - attempt 8 by mine changed the tree in 99 s",
		"below who wrote it":       "**pawl[bot]** commented on #7:\n" + plain,
		"quoted, with own words":   "> something of a person\n\n" + plain,
		"wrapped into other lines": "A review or a comment on this\npull request leads to\nanother attempt",
	} {
		if j := Judge(comment(copied), scene); !strings.Contains(j.Reason, "copy of what Pawl wrote") {
			t.Errorf("%s: %q is not known as a copy", name, copied)
		}
	}
	for name, remark := range map[string]string{
		"a request below the copy": plain + "\nFix that.",
		"a request above the copy": "Please fix what it says:\n" + plain,
		"the description":          "Please add a second line to the file",
		"few words":                "changed the tree",
		"other words":              "A review of this comment led to another pull request yesterday.",
		"a quotation alone":        "> " + strings.ReplaceAll(plain, "\n", "\n> "),
		"nothing":                  "",
	} {
		if j := Judge(comment(remark), scene); strings.Contains(j.Reason, "copy of what Pawl wrote") {
			t.Errorf("%s: %q is taken for a copy", name, remark)
		}
	}
}
