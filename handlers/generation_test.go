package handlers

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestATextRefersToPawlsWorkByBranchAndPullRequestOnly(t *testing.T) {
	of := thread.State{Attempts: []thread.Attempt{{Pull: 12}, {}}}
	for text, want := range map[string]bool{
		"as in #12": true,
		"see https://github.com/acme/widgets/pull/12": true,
		"after pawl/issue-7 was pushed":               true,
		"as in #7, which is people's":                 false,
		"as in #123":                                  false,
		"after pawl/issue-77":                         false,
		"nothing, or #0, or #99999999999999999999999": false,
		"the 12th of them":                            false,
	} {
		if got := refers(text, thread.ID{Owner: "acme", Name: "widgets", Number: 7}, of); got != want {
			t.Errorf("%q: %v, want %v", text, got, want)
		}
	}
}

func TestAnIssueBeganBesideAnAttemptOfItsAuthor(t *testing.T) {
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s := thread.State{
		Feedback: []thread.Request{{Feedback: thread.Feedback{By: feedback.Actor{Login: "ada"}}}},
		Attempts: []thread.Attempt{{At: began, EndedAt: began.Add(time.Hour)}},
	}
	for _, c := range []struct {
		author string
		after  time.Duration
		want   bool
	}{
		{"Ada", time.Minute, true}, {"ada", time.Hour + ownAfter, true},
		{"ada", time.Hour + ownAfter + time.Second, false}, {"ada", -time.Second, false}, {"bob", time.Minute, false},
	} {
		if got := beganBeside(s, c.author, began.Add(c.after)); got != c.want {
			t.Errorf("%s after %s: %v, want %v", c.author, c.after, got, c.want)
		}
	}
	if beganBeside(s, "ada", time.Time{}) {
		t.Error("an issue of which nobody knows when it was opened counts")
	}
	s.Attempts[0].EndedAt = time.Time{}
	if !beganBeside(s, "ada", began.Add(48*time.Hour)) {
		t.Error("an attempt that runs is none")
	}
}

func TestOnlyAPersonsCommentOrButtonBeginsANewChain(t *testing.T) {
	person, bot := feedback.Actor{Login: "ada", ID: 1, Type: "User"}, feedback.Actor{Login: "ci[bot]", ID: 2, Type: "Bot"}
	for _, c := range []struct {
		name   string
		by     feedback.Actor
		source policy.Source
		target string
		want   bool
	}{
		{"a comment", person, policy.FromComment, "issue_comment", true},
		{"a button", person, policy.FromButton, "", true},
		{"a bot's comment", bot, policy.FromComment, "issue_comment", false},
		{"the text that it was opened with", person, policy.FromComment, "issue", false},
		{"a label", person, policy.FromLabel, "issue", false},
		{"a description", person, policy.FromDescription, "issue", false},
		{"a check", person, policy.FromCheckRun, "", false},
	} {
		if got := feedback.Typed(c.by, c.source, c.target); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
