package handlers

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestReferencesAreBranchesAndPullRequests(t *testing.T) {
	of := thread.State{Attempts: []thread.Attempt{{Pull: 12}, {}}}
	for text, want := range map[string]bool{
		"as in #12": true,
		"see https://github.com/acme/widgets/pull/12": true,
		"after pawl/issue-7 was pushed":               true,
		"as in #7, the issue itself":                  false,
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

func TestAttemptCoversTwoMinutesAfterItsEnd(t *testing.T) {
	began := time.Date(2026, 11, 24, 12, 0, 0, 0, time.UTC)
	s := thread.State{Attempts: []thread.Attempt{{At: began, EndedAt: began.Add(time.Hour)}}}
	for after, want := range map[time.Duration]bool{
		time.Minute: true, time.Hour + ownAfter: true, time.Hour + ownAfter + time.Second: false, -time.Second: false,
	} {
		if got := ranAt(s, began.Add(after)); got != want {
			t.Errorf("after %s: %v, want %v", after, got, want)
		}
	}
	if ranAt(s, time.Time{}) {
		t.Error("ranAt is true for an issue with an unknown opening time")
	}
	s.Attempts[0].EndedAt = time.Time{}
	if !ranAt(s, began.Add(48*time.Hour)) {
		t.Error("ranAt is false during a running attempt")
	}
}

func (w *rig) addEvent(t thread.ID, kind thread.Kind, data any) {
	w.T.Helper()
	_, err := w.Store.Append(w.T.Context(), t, false, thread.NewEvent{Kind: kind, At: w.Now(), Data: data})
	w.Must(err)
}

// posts begins an attempt whose agent runs a posting command.
func (w *rig) posts(t thread.ID, command string) {
	w.T.Helper()
	var agent feedback.Authored
	agent.Add(command, true)
	w.addEvent(t, thread.KindAttemptStarted, thread.Started{N: 1, Run: 1})
	w.addEvent(t, thread.KindAuthored, thread.Authored{N: 1, Runs: agent.Fresh()})
}

// A user may label an issue that an agent opened.
func TestLabelledIssueKeepsItsOpenersGeneration(t *testing.T) {
	const wrote = "Please sort the second list of the report as well."
	for _, c := range []struct {
		name, by, body string
		after          time.Duration // after the attempt's end
		want           int
		cause          string
	}{
		{"by the App while Pawl works", "pawl[bot]", "Sort it.", 0, 2, "it was opened by pawl[bot] while or shortly after Pawl worked on "},
		{"by the App at another time", "pawl[bot]", "Sort it.", time.Hour, 1, "it was opened by pawl[bot]"},
		{"by another login, in the agent's words", "mallory", wrote, 0, 2, "the agent wrote it while it worked on "},
		{"by another login, in the agent's words, later", "mallory", wrote, time.Hour, 0, ""},
		{"by another login, in other words", "mallory", "Sort it.", 0, 0, ""},
		{"by the user who asked for the work", "ada", "Sort it.", 0, 2, "it was opened by ada while or shortly after Pawl worked on "},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRig(t)
			near := w.Issue("Sort the list.")
			w.addEvent(near, thread.KindFeedback, thread.Feedback{Source: policy.FromLabel, By: feedback.Actor{Login: "ada"}, Generation: 1})
			w.posts(near, "gh issue create --title More --body '"+wrote+"'")
			w.addEvent(near, thread.KindAttemptEnded, policy.Receipt{N: 1})
			w.Pass(c.after + time.Second)
			n, err := w.GitHub.OpenIssue(testRepo, c.by, "More", c.body)
			w.Must(err)
			w.Must(w.GitHub.AddLabel(testRepo, n, "ada", thread.Label))
			w.Handle()
			all := w.state(thread.ID{Owner: near.Owner, Name: near.Name, Number: n}).Feedback
			if len(all) != 1 || all[0].Generation != c.want || (c.cause == "") != (all[0].Cause == "") || !strings.HasPrefix(all[0].Cause, c.cause) {
				t.Errorf("feedback %+v, want one entry of generation %d, because %q", all, c.want, c.cause)
			}
		})
	}
}

func TestOnlyAUsersCommentOrButtonBeginsAChain(t *testing.T) {
	user, bot := feedback.Actor{Login: "ada", ID: 1, Type: "User"}, feedback.Actor{Login: "ci[bot]", ID: 2, Type: "Bot"}
	for _, c := range []struct {
		name   string
		by     feedback.Actor
		source policy.Source
		target string
		want   bool
	}{
		{"a comment", user, policy.FromComment, "issue_comment", true},
		{"a button", user, policy.FromButton, "", true},
		{"a bot's comment", bot, policy.FromComment, "issue_comment", false},
		{"an issue's first text", user, policy.FromComment, "issue", false},
		{"a label", user, policy.FromLabel, "issue", false},
		{"a description", user, policy.FromDescription, "issue", false},
		{"a check", user, policy.FromCheckRun, "", false},
	} {
		if got := feedback.Typed(c.by, c.source, c.target); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
