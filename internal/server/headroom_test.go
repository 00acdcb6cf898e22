package server_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakeprovider"
)

// Each attempt makes one call, which uses 20 % of a window.
func TestNoAttemptBeginsThatWouldReachTheLimit(t *testing.T) {
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
	if said := r.StatusComment(n); !strings.Contains(said, "an attempt uses about 20 % of the 5h window; 5 % is left until") ||
		!strings.Contains(said, "The operator can raise `policy.headroom.hold_at`") {
		t.Errorf("the status comment says\n%s", said)
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
	calls := 0 // beside the server's own look at whether the provider can be reached
	for _, q := range provider.Requests() {
		if q.Method == http.MethodPost {
			calls++
		}
	}
	if calls != 3 {
		t.Errorf("%d calls of the model, want 3", calls)
	}
	provider.Set("used", "0")
	provider.Set("used_step", "1")
	r.Clock.Reach(v.Until)
	r.Sweep()
	r.Await("the end", func() bool { return r.View(n).State == checkrun.Done })
}

// TestAttemptTakesTheAccountWithHeadroom: two providers' keys are two accounts of one backend.
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
	// Nothing is known at first. Then account one reports 90 %, and two is unknown, later 30 % used.
	if diff := cmp.Diff([]string{"one", "two", "two"}, took); diff != "" {
		t.Errorf("the attempts' accounts (-want +got)\n%s", diff)
	}
}
