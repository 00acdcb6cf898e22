package web_test

import (
	"context"
	"encoding/json"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html"

	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/learning"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// evil tries to break out of every HTML context.
const evil = "\"'><script>alert(1)</script><img src=x onerror=alert(1)></pre></title></style>{{.}}<!-- \x1b[31mred\x1b[0m \u202eevil\u202c \u200b\x00\u3164\ufe0f javascript:alert(1)"

func (s *site) attacked(issue string) {
	f := remark(policy.Source(evil), evil, evil, evil, evil)
	f.Snapshot = about(evil, "javascript:alert(1)")
	f.Snapshot.Pull, f.Snapshot.HeadRef = true, evil
	s.happened(issue, now.Add(-time.Hour), thread.KindFeedback, f)
	s.happened(issue, now, thread.KindIgnored, remark(policy.Source(evil), evil, evil, evil, evil))
	a := start(1, evil, evil, evil)
	a.Effort, a.Continues = evil, evil
	a.Decision.Choice = &policy.Choice{Mode: policy.ModeLearn, Chosen: evil, Reasons: []string{evil}}
	s.happened(issue, now, thread.KindAttemptStarted, a)
	s.happened(issue, now, thread.KindAttemptEnded, policy.Receipt{
		N: 1, Ending: policy.Ending(evil), Outcome: policy.Outcome(evil), Detail: evil, Reasons: []string{evil}, StartTree: "a", EndTree: "b",
		Commit: "0f3c/../../evil", Pushed: true, LeftOut: []string{evil}, Final: evil, Edits: policy.Edits{Operations: 60, Files: 1, MaxRepeat: 30, MaxRepeatPath: evil},
		Verify: []policy.Verified{{Command: evil, Output: evil, Exit: 1, Known: []string{evil}}}, Tests: []string{evil},
		Rungs: []policy.Rung{{Rung: 2, Trigger: evil, Response: evil}}, Limit: &policy.Limit{Kind: evil, Message: evil},
		Transcript: "/var/lib/pawl/transcript",
	})
	s.happened(issue, now, thread.KindThread, thread.Change{What: evil, By: evil, Detail: evil, Delivery: evil})
	question, command := f, f
	question.Word, command.Backend = evil, evil
	s.happened(issue, now, thread.KindQuestion, question)
	s.happened(issue, now, thread.KindControl, command)
	s.happened(issue, now, thread.KindActDone, thread.Act{Key: "pull_request", ID: 3, URL: "data:text/html,<script>alert(1)</script>", Note: evil})
	s.happened(issue, now, thread.Kind(evil), json.RawMessage(`{}`))
	s.reading(evil, policy.Window{Name: evil, Used: 0.5, SeenAt: now, ResetsAt: now.Add(time.Hour)})
	s.leased(issue, thread.Batch{
		Account: evil, Breaker: func(policy.Breaker) policy.Breaker { return policy.Breaker{Kind: policy.Ending(evil), Consecutive: 2} },
		Cooldown: &thread.Cooldown{Backend: evil, Cooldown: policy.Cooldown{Class: policy.Class(evil), Until: now.Add(time.Hour)}, Thread: evil},
		Events: []thread.NewEvent{{Kind: thread.KindDecision, At: now, Data: thread.Decided{Seen: 9,
			Decision: policy.Decision{Action: policy.Action(evil), Rule: evil, Reasons: policy.Because(evil, evil), Hint: evil, Until: now.Add(time.Hour)},
			Problems: []thread.Problem{{Path: evil, Line: 1, Message: evil}}}}},
	})
}

// hostile returns a learning report whose names are all hostile.
func hostile(context.Context) (solver.LearningReport, error) {
	return solver.LearningReport{
		Mode: policy.ModeAuto, InForce: policy.ModeLearn,
		Arms: learning.View([]learning.Arm{{Option: policy.Option{Backend: evil, Model: evil, Effort: evil}, Posterior: learning.Posterior{Mean: 0.5, Weight: 2}, Rewards: 3, Chosen: evil},
			{Option: policy.Option{Backend: "other"}, Posterior: learning.Posterior{Mean: 0.5, Weight: 2}}}),
		Sources: []learning.SourceHealth{{Source: learning.SignalSource(evil), Attempts: 3, Values: 3, Degraded: true, Reason: evil,
			Violations: []learning.Violation{{Attempt: evil, Check: learning.ValidityRule(evil)}, {Attempt: "evil/x#3/" + evil, Check: learning.ValidityRule(evil)}}}},
	}, nil
}

func allowed() (elements, attributes string) {
	return " html head meta title style script body header main footer nav section article form label input select option button a div b h1 h2 h3 small ul ol li p br table thead tbody tr th td time dl dt dd pre blockquote code svg rect details summary span i ",
		" lang charset name content rel class id datetime title viewbox preserveaspectratio role aria-label aria-labelledby aria-hidden aria-current aria-live x y width height " +
			"method action type value placeholder autocomplete selected disabled hidden open reversed start tabindex data-changed data-live data-elapsed data-used data-call data-note data-older data-from data-label href "
}

var ownAddress = regexp.MustCompile(`^(\./|(\.\./)+)((threads|accounts|deliveries)/[A-Za-z0-9%._/=:~-]+(\?[a-z0-9=&;]*)?|costs|accounts|backends|logout|\?[a-z0-9=&]*)?$|^#main$`)

func TestHostileStringsAreEscaped(t *testing.T) {
	s := open(t, func(o *web.Options) { o.Learning = hostile })
	s.attacked("evil/x#3")
	s.deliveries()
	if err := s.store.FinishDelivery(t.Context(), "a", thread.Unparsable, evil); err != nil {
		t.Fatal(err)
	}
	elements, attributes := allowed()
	for _, path := range []string{"/", "/accounts", "/backends", "/threads/evil/x/3"} {
		page := s.page(path)
		if strings.Count(page, "<script>") != 1 {
			t.Errorf("%s contains a foreign script", path)
		}
		if strings.Contains(page, "/var/lib/pawl") {
			t.Errorf("%s shows the path of transcripts", path)
		}
		if !strings.Contains(page, "&lt;script&gt;alert(1)") {
			t.Errorf("%s does not show the hostile text", path)
		}
		if strings.ContainsAny(page, "\x00\x1b\u202e\u202c\u200b\u3164\ufe0f") {
			t.Errorf("%s contains invisible characters", path)
		}
		for z := html.NewTokenizer(strings.NewReader(page)); z.Next() != html.ErrorToken; {
			k := z.Token()
			if k.Type == html.CommentToken {
				t.Errorf("%s contains the comment %q", path, k.Data)
			}
			if k.Type != html.StartTagToken && k.Type != html.SelfClosingTagToken {
				continue
			}
			if !strings.Contains(elements, " "+k.Data+" ") {
				t.Errorf("%s contains the element %s", path, k)
			}
			for _, a := range k.Attr {
				if !strings.Contains(attributes, " "+strings.ToLower(a.Key)+" ") {
					t.Errorf("%s contains the attribute %s in %s", path, a.Key, k)
				}
				if (a.Key == "href" || a.Key == "action" || a.Key == "data-live" || a.Key == "data-older") && !ownAddress.MatchString(a.Val) && !strings.HasPrefix(a.Val, "https://github.com/") {
					t.Errorf("%s links to %q", path, a.Val)
				}
			}
		}
	}
}

func TestHostileLogIsShownAsText(t *testing.T) {
	s := open(t, nil)
	s.busy()
	s.printed(messageLine(evil), calls(evil), evil)
	for path, kind := range map[string]string{
		"/threads/acme/gadgets/44": "text/html", "/threads/acme/gadgets/44/attempts/1/log": "text/html",
		"/threads/acme/gadgets/44/attempts/1/log?lines&before=99999": "application/json", "/threads/acme/gadgets/44/attempts/1/raw": "text/plain",
	} {
		answer, body := s.get(path)
		if answer.StatusCode != http.StatusOK || !strings.HasPrefix(answer.Header.Get("Content-Type"), kind) || answer.Header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %s, %s", path, answer.Status, answer.Header)
		}
		if kind != "text/plain" && (strings.Contains(body, "<img") || strings.Contains(body, "<script>alert") || strings.ContainsAny(body, "\u202e\x1b\u200b") || !strings.Contains(html.UnescapeString(body), "[U+202E]evil[U+202C]")) {
			t.Errorf("%s contains markup or invisible characters by an agent:\n%s", path, body)
		}
		if !strings.HasPrefix(answer.Header.Get("Content-Security-Policy"), "default-src 'none'") {
			t.Errorf("%s: policy %q", path, answer.Header.Get("Content-Security-Policy"))
		}
	}
}

func TestHugeTextsAreCut(t *testing.T) {
	s := open(t, nil)
	f := remark(policy.FromComment, "octocat", "solve", "command solve", strings.Repeat("<é\x00", 200_000))
	s.happened("acme/widgets#1", now, thread.KindFeedback, f)
	s.happened("acme/widgets#1", now, thread.KindAttemptStarted, start(1, "codex", "main", "feedback"))
	s.happened("acme/widgets#1", now, thread.KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Crashed, Outcome: policy.Outcome(policy.Crashed),
		Final: strings.Repeat("final ", 100_000), Detail: strings.Repeat("detail ", 100_000)})
	for _, path := range []string{"/", "/threads/acme/widgets/1"} {
		if n := len(s.page(path)); n > 64<<10 {
			t.Errorf("%s has %d bytes", path, n)
		}
	}
}
