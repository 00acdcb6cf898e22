package gateway

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

// TestRealAgentsEndWhenTheGatewayRefuses sends the installed CLIs each refusal of the gateway. They must give up
// instead of retrying. Tests in cmd/pawl cover runs without refusals.
func TestRealAgentsEndWhenTheGatewayRefuses(t *testing.T) {
	p, err := fakeprovider.Start(fakeprovider.Options{Key: testKey})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	closed := func(l policy.Limit) func(*Grant) {
		return func(g *Grant) { g.Limited = func(context.Context) (policy.Limit, bool) { return l, true } }
	}
	const mostRefused = 4
	cases := map[string]func(*Grant){
		"budget":        func(g *Grant) { g.MaxTokens = 1 },
		"limit":         closed(policy.Limit{Kind: policy.UsageLimit, Message: "the plan is used up", ResetsAt: testNow().Add(time.Hour)}),
		"unknown reset": closed(policy.Limit{Kind: policy.UsageLimit, Message: "the plan is used up"}),
	}
	needs.All(t, "the agent CLIs")
	for _, cli := range hostileCLIs {
		for what, grant := range cases {
			if what == "unknown reset" && cli.kind != "claude" {
				continue // the other CLIs get the same answer as for the budget
			}
			t.Run(cli.kind+"/"+what, func(t *testing.T) {
				t.Parallel()
				cli.installed(t)
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
				defer cancel()
				base := p.URL("edit-success~" + cli.kind + strings.ReplaceAll(what, " ", "-"))
				s := open(t, cli.protocol, base, grant)
				printed, tree := runHostile(ctx, t, cli, s)
				if ctx.Err() != nil {
					t.Error("the agent had to be killed")
				}
				u := s.settled()
				t.Logf("%+v", u)
				_, err := os.Stat(filepath.Join(tree, "hello.txt"))
				edited := err == nil
				if u.Refused > mostRefused || strings.Contains(printed, testKey) {
					t.Errorf("%+v\n%s", u, printed)
				}
				stopped := !edited && u.Requests == 0 && u.Refused > 0
				if what == "budget" { // its first call is answered
					stopped = u.BudgetStopped != ""
				}
				if !stopped {
					t.Errorf("the file is there: %t, %+v", edited, u)
				}
			})
		}
	}
}
