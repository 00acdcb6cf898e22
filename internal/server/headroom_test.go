package server_test

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

// Each attempt makes one call, which uses 20 % of a window.
func TestAttemptWaitsIfItWouldReachTheLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	provider, err := fakeprovider.Start(fakeprovider.Options{Key: "sk-of-the-provider", Now: r.Clock.Now})
	r.Must(err)
	t.Cleanup(func() { provider.Close() })
	provider.Set("limit_headers", "1")
	provider.Set("used", "50")
	provider.Set("used_step", "20")
	r.Config = fmt.Sprintf("providers: [{name: fake, protocol: openai, base_url: %s/v1, key: sk-of-the-provider}]\n", provider.URL("says"))
	r.Agent(`curl -sS -o /dev/null "$OPENAI_BASE_URL/responses" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' \
	-d '{"model":"mock-model","input":"What is 6 times 7?"}'
echo "$PAWL_THREAD" >> a.txt
`, "provider: fake, model: mock-model")
	r.Start()
	for used := range 3 {
		n := r.Solve(fmt.Sprintf("Issue %d", used), "Please add a line.")
		if v := r.Idle(n); v.State != checkrun.Done {
			t.Fatalf("issue %d: %s (%s %v), want done", used, v.State, v.Rule, v.Reasons)
		}
	}
	n := r.Solve("One more", "Please add a line.")
	v := r.Idle(n)
	if v.State != checkrun.Waiting || v.Rule != "headroom" {
		t.Fatalf("%s (%s %v), want a wait for headroom", v.State, v.Rule, v.Reasons)
	}
	if left := v.Until.Sub(r.Clock.Now()); left > 31*time.Minute || len(v.Attempts) > 0 {
		t.Errorf("%s and %d attempts, want at most half an hour until the reset, and no attempt", left, len(v.Attempts))
	}
	if why := v.Reasons[0].Text; why != "account mine: an attempt uses about 20 % of the 5h window; 5 % is left until" {
		t.Errorf("it waits because %q", why)
	}
	if comment := r.StatusComment(n); !strings.Contains(comment, "an attempt uses about 20 % of the 5h window; 5 % is left until") ||
		!strings.Contains(comment, "The operator can raise `policy.headroom.hold_at`") {
		t.Errorf("the status comment is\n%s", comment)
	}
	shares := map[string]float64{}
	for _, a := range r.Status().Accounts {
		for _, w := range a.Windows {
			shares[a.Name+" "+w.Name] = w.Used
		}
	}
	if diff := cmp.Diff(map[string]float64{"mine 5h": 0.9, "mine 7d": 0.4}, shares); diff != "" {
		t.Errorf("the used shares of pawl status (-want +got)\n%s", diff)
	}
	if calls := modelCalls(provider); calls != 3 {
		t.Errorf("%d calls of the model, want 3", calls)
	}
	provider.Set("used", "0")
	provider.Set("used_step", "1")
	r.Clock.Reach(v.Until)
	r.Sweep()
	r.Await("the end", func() bool { return r.View(n).State == checkrun.Done })
}

// modelCalls counts the model calls. The server's own requests only check that the provider is reachable.
func modelCalls(provider *fakeprovider.Server) (n int) {
	for _, q := range provider.Requests() {
		if q.Method == http.MethodPost {
			n++
		}
	}
	return n
}

// One backend has two accounts: the keys of two providers.
func TestAttemptTakesTheAccountWithHeadroom(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	used := map[string]string{"one": "90", "two": "30"}
	var providers, accounts strings.Builder
	for _, name := range []string{"one", "two"} {
		provider, err := fakeprovider.Start(fakeprovider.Options{Key: "sk-of-" + name, Now: r.Clock.Now})
		r.Must(err)
		t.Cleanup(func() { provider.Close() })
		provider.Set("limit_headers", "1")
		provider.Set("used", used[name])
		fmt.Fprintf(&providers, "  - {name: %s, protocol: openai, base_url: %s/v1, key: sk-of-%s}\n", name, provider.URL("says"), name)
		fmt.Fprintf(&accounts, "  - {name: %s, provider: %s}\n", name, name)
	}
	r.Config = "providers:\n" + providers.String() + "accounts:\n" + accounts.String()
	r.Agent(`curl -sS -o /dev/null "$OPENAI_BASE_URL/responses" -H "Authorization: Bearer $OPENAI_API_KEY" -H 'Content-Type: application/json' \
	-d '{"model":"mock-model","input":"What is 6 times 7?"}'
echo "$PAWL_THREAD" >> a.txt
`, "accounts: [one, two], model: mock-model")
	r.Start()
	var took []string
	for i := range 3 {
		v := r.Idle(r.Solve(fmt.Sprintf("Issue %d", i), "Please add a line."))
		if v.State != checkrun.Done || len(v.Attempts) != 1 {
			t.Fatalf("issue %d: %s (%s %v) after %d attempts, want done after one", i, v.State, v.Rule, v.Reasons, len(v.Attempts))
		}
		took = append(took, v.Attempts[0].Account)
	}
	// At first, nothing is known. Then account one has used 90 %, and two is unknown. Later, two has used 30 %.
	if diff := cmp.Diff([]string{"one", "two", "two"}, took); diff != "" {
		t.Errorf("the attempts' accounts (-want +got)\n%s", diff)
	}
}

// Each successful response uses 5 % of the window. From 100 % on, the provider refuses requests.
func TestRealCLIsStayBelowTheLimit(t *testing.T) {
	t.Parallel()
	needs.All(t, "the agent CLIs")
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	for cli, model := range map[string]string{config.Codex: "gpt-5.5", config.Claude: "claude-opus-4-8"} {
		t.Run(cli, func(t *testing.T) {
			t.Parallel()
			if _, err := os.Stat(filepath.Join(bin, cli)); err != nil {
				t.Skip("the CLI is not installed; .ci/setup installs it")
			}
			r := newRig(t, nil)
			provider, err := fakeprovider.Start(fakeprovider.Options{Key: "sk-of-the-provider", Now: r.Clock.Now})
			r.Must(err)
			t.Cleanup(func() { provider.Close() })
			for key, value := range map[string]string{"limit_headers": "1", "used": "30", "used_step": "5"} {
				provider.Set(key, value)
			}
			url := provider.URL("edit-success")
			protocol := config.ProtocolOf(cli)
			if protocol == config.OpenAI {
				url += "/v1"
			}
			r.Config = fmt.Sprintf(`providers: [{name: fake, protocol: %s, base_url: %s, key: sk-of-the-provider}]
backends: [{name: %s, kind: %s, argv: [%q], provider: fake, model: %s}]
`, protocol, url, cli, cli, filepath.Join(bin, cli), model)
			r.Start()
			began, rule := 0, policy.Rule("")
			for i := range 10 {
				v := r.Idle(r.Solve(fmt.Sprintf("Issue %d", i), "Please create hello.txt."))
				for _, a := range v.Attempts {
					if a.Ending != policy.Completed {
						t.Fatalf("an attempt of issue %d ended %s: %s", i, a.Ending, a.Detail)
					}
				}
				began += len(v.Attempts)
				if rule = v.Rule; rule == policy.RuleHeadroom {
					break
				}
			}
			if began < 2 || rule != policy.RuleHeadroom {
				t.Errorf("%d attempts, then rule %s; want a few, then headroom", began, rule)
			}
		})
	}
}

// CLIs with their own login report windows in their output or in a file. The agent can write both.
func TestReportedWindowCountsOnceTwoThreadsReportIt(t *testing.T) {
	t.Parallel()
	const codex = `case "$1" in --version) echo "codex-cli VERSION"; exit;; esac
id=01a1fd24-701f-7592-bb9e-941e16d06283
sessions="$HOME/.codex/sessions/2026/11/29"
mkdir -p "$sessions"
echo '{"type":"event_msg","payload":{"type":"task_started"}}' > "$sessions/rollout-2026-11-29T08-06-25-$id.jsonl"
echo '{"type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":97,"window_minutes":300,"resets_at":'$(cat "$CTRL/reset")'}}}}' >> "$sessions/rollout-2026-11-29T08-06-25-$id.jsonl"
echo "$PAWL_THREAD" >> a.txt
echo '{"type":"thread.started","thread_id":"'$id'"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"0","type":"agent_message","text":"Added a line."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"cached_input_tokens":0,"output_tokens":1}}'
`
	const claude = `case "$1" in --version) echo "VERSION (Claude Code)"; exit;; esac
id=6a5a1b42-319c-4f8a-a345-e983b6a48ff2
echo "$PAWL_THREAD" >> a.txt
echo '{"type":"system","subtype":"init","cwd":"/","session_id":"'$id'","model":"m"}'
echo '{"type":"assistant","message":{"id":"1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"Added a line."}]},"session_id":"'$id'"}'
echo '{"type":"rate_limit_event","rate_limit_info":{"status":"allowed_warning","resetsAt":'$(cat "$CTRL/reset")',"rateLimitType":"five_hour","utilization":0.97},"session_id":"'$id'"}'
echo '{"type":"result","subtype":"success","is_error":false,"num_turns":1,"result":"Added a line.","session_id":"'$id'","usage":{"input_tokens":1,"output_tokens":1}}'
`
	for kind, script := range map[string]string{config.Codex: codex, config.Claude: claude} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.Must(os.WriteFile(filepath.Join(r.Dir, "auth.json"), []byte("{}"), 0o600))
			r.Agent(strings.Replace(script, "VERSION", config.CLIOf(kind).Version, 1), "credential_file: auth.json")
			r.Config = strings.Replace(r.Config, "kind: command", "kind: "+kind, 1)
			r.Start()
			r.Must(os.WriteFile(filepath.Join(r.Ctrl(), "reset"), fmt.Append(nil, r.Clock.Now().Add(time.Hour).Unix()), 0o600))
			var rules []policy.Rule
			for i := range 3 {
				v := r.Idle(r.Solve(fmt.Sprintf("Issue %d", i), "Please add a line."))
				rules = append(rules, v.Rule)
				if i < 2 && v.State != checkrun.Done {
					t.Fatalf("issue %d: %s (%s %v), want done", i, v.State, v.Rule, v.Reasons)
				}
			}
			if rules[2] != policy.RuleHeadroom {
				t.Errorf("the rules are %q; want the third thread to wait by headroom, after two reported the window", rules)
			}
		})
	}
}
