package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
)

// saying is an agent with Codex's stream that writes these messages at its first call, after what it does, and works at
// every further one.
func saying(t *testing.T, does string, messages ...string) string {
	t.Helper()
	lines := []string{`{"type":"thread.started","thread_id":"019a1fd2-0000-7451-8d0f-9bf2a7204a41"}`, `{"type":"turn.started"}`}
	for _, m := range messages {
		item, err := json.Marshal(map[string]any{"type": "item.completed", "item": map[string]string{"id": "i1", "type": "agent_message", "text": m}})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(item))
	}
	lines = append(lines, `{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":5}}`)
	return "n=$(wc -l < \"$CTRL/calls\" | tr -d ' '); cat > \"$CTRL/prompt.$n\"\n[ $n = 1 ] || echo two >> a.txt\nif [ $n = 1 ]; then\n:\n" + does +
		"\nfi\ncat <<'END'\n" + strings.Join(lines, "\n") + "\nEND\n"
}

func TestAnAgentMayDeclineAndAPersonIsAsked(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['grep two a.txt']\n"})
	r.agent(saying(t, "", "I look at the task.", "DECLINED: a.txt is to be empty, and to hold @everyone and <!-- x -->\nBoth cannot be."), "stream: codex, escalated_effort: high")
	r.start()
	n, err := r.world.OpenIssue(rigRepo, writer, "An odd task", "Please empty a.txt.")
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve and fill it, too")
	r.must(err)
	s := r.ending(n)
	all := r.state(n).Attempts
	last := all[len(all)-1].Receipt
	if r.calls() != 1 || s.Rule != "declined" || last.Outcome != policy.Declined || len(last.Verify) != 0 || last.Detail != "" {
		t.Fatalf("%d calls, then %s (%s %q) with outcome %s, verified by %v, %q; want one, then declined", r.calls(), s.State, s.Rule, s.Reasons, last.Outcome, last.Verify, last.Detail)
	}
	comment := ""
	for _, c := range r.world.Comments(rigRepo, n) {
		if strings.Contains(c.Body, checkrun.StatusMarker(threadName(n))) {
			comment = c.Body
		}
	}
	comment, _, _ = strings.Cut(comment, "What the agent says:") // in a block of code
	for _, want := range []string{"Stopped: the agent declined: a.txt is to be empty", "the agent declined: a.txt is to be empty", "You can:** Say in a comment what to do instead"} {
		if !strings.Contains(comment, want) || strings.Contains(comment, "<!-- x") || strings.Contains(comment, "How it failed") {
			t.Errorf("the status comment does not say %q alone:\n%s", want, comment)
		}
	}
	if g := all[0]; len(r.world.Pulls(rigRepo)) != 0 || g.Receipt.Progress() {
		t.Errorf("declining led to %d pull requests", len(r.world.Pulls(rigRepo)))
	}
	r.play(n, []happens{{"a person says what to do instead", r.says(n, writer, "/pawl solve only the first half then"), "+ command solve"}})
	for _, want := range []string{"and fill it, too", "only the first half then", "The last attempt declined the task", "a.txt is to be empty"} {
		if p := r.prompt("2"); !strings.Contains(p, want) {
			t.Errorf("the second prompt does not say %q:\n%s", want, p)
		}
	}
}

func TestWhatLooksLikeADeclineIsNone(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		does     string
		messages []string
		rule     policy.Rule
	}{
		"with changes":             {"echo two >> a.txt", []string{"DECLINED: I did it all the same"}, "done"},
		"in a block of code":       {"", []string{"```\nDECLINED: an example\n```"}, "no_change"},
		"in an earlier message":    {"", []string{"DECLINED: so I thought", "No, nothing is to be done."}, "no_change"},
		"after a failure":          {"", []string{"DECLINED: no"}, "no_progress"},
		"with a protected file":    {"mkdir -p .github && echo x > .github/pawl.yml", []string{"DECLINED: no"}, "left_out"},
		"further down its message": {"", []string{"I looked.\n\nDECLINED: no"}, "no_change"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			script := saying(t, tc.does, tc.messages...)
			if tc.rule == "no_progress" {
				script = strings.Replace(script, `{"type":"turn.completed"`, `{"type":"turn.failed","error":{"message":"it broke"}`, 1) + "exit 1\n"
			}
			r.agent(script, "stream: codex")
			r.start()
			n := r.solve("A task", "Please.")
			if s := r.ending(n); s.Rule != tc.rule || r.calls() != 1 {
				t.Errorf("%s (%s %q) after %d calls, want %s after one", s.State, s.Rule, s.Reasons, r.calls(), tc.rule)
			}
		})
	}
}
