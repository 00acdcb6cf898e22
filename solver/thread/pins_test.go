package thread

import (
	"slices"
	"testing"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

func TestPinsComeFromRequestsAndTheLastAttempt(t *testing.T) {
	ada, bot := feedback.Actor{ID: 1, Login: "ada", Type: "User"}, feedback.Actor{ID: 2, Login: "helper[bot]", Type: "Bot"}
	remark := func(by feedback.Actor, source policy.Source, sha, head string) Feedback {
		return Feedback{Source: source, By: by, SHA: sha, Target: Target{Kind: "issue_comment"}, Snapshot: &Details{HeadSHA: head}}
	}
	begun := Started{N: 1, Run: 1, Seen: 1, Base: "base", Decision: policy.Decision{Action: policy.DoAttempt}}
	pushed := policy.Receipt{N: 1, Ending: policy.Completed, Outcome: policy.VerifyFailed, Pushed: true, Commit: "pushed"}
	ask := Decided{Decision: policy.Decision{Action: policy.DoAsk, Rule: policy.RuleRewritten}, On: "waited"}
	request := happened{KindFeedback, remark(ada, policy.FromComment, "", "")}
	for name, tc := range map[string]struct {
		events []happened
		want   []string
	}{
		"a comment without a commit":                {[]happened{request}, nil},
		"a review":                                  {[]happened{happened{KindFeedback, remark(ada, policy.FromReview, "reviewed", "head")}}, []string{"reviewed"}},
		"a comment, with the head at its time":      {[]happened{happened{KindFeedback, remark(ada, policy.FromComment, "", "head")}}, []string{"head"}},
		"a running attempt":                         {[]happened{request, happened{KindAttemptStarted, begun}}, []string{"base"}},
		"a pushed attempt":                          {[]happened{request, happened{KindAttemptStarted, begun}, happened{KindAttemptEnded, pushed}}, []string{"pushed"}},
		"a user's comment after a pushed attempt":   {[]happened{request, happened{KindAttemptStarted, begun}, happened{KindAttemptEnded, pushed}, happened{KindFeedback, remark(ada, policy.FromComment, "", "new")}}, []string{"new"}},
		"a bot's review after a pushed attempt":     {[]happened{request, happened{KindAttemptStarted, begun}, happened{KindAttemptEnded, pushed}, happened{KindFeedback, remark(bot, policy.FromReview, "new", "new")}}, []string{"new", "pushed"}},
		"Pawl waits for users":                      {[]happened{happened{KindFeedback, remark(ada, policy.FromReview, "reviewed", "")}, happened{KindDecision, seen(ask, 1)}}, []string{"reviewed"}},
		"a bot answers while Pawl waits for users":  {[]happened{happened{KindFeedback, remark(ada, policy.FromReview, "reviewed", "")}, happened{KindDecision, seen(ask, 1)}, happened{KindFeedback, remark(bot, policy.FromComment, "", "new")}}, []string{"reviewed", "new"}},
		"a user answers while Pawl waits for users": {[]happened{happened{KindFeedback, remark(ada, policy.FromReview, "reviewed", "")}, happened{KindDecision, seen(ask, 1)}, happened{KindFeedback, remark(ada, policy.FromComment, "", "new")}}, []string{"waited", "new"}},
		"a review that a pushed attempt took":       {[]happened{happened{KindFeedback, remark(ada, policy.FromReview, "reviewed", "")}, happened{KindAttemptStarted, begun}, happened{KindAttemptEnded, pushed}}, []string{"pushed"}},
	} {
		var got []string
		for _, p := range fold(t, tc.events...).Pins() {
			got = append(got, p.SHA)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

func seen(d Decided, seq int64) Decided { d.Seen = seq; return d }
