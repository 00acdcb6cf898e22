package gateway

import (
	"context"
	"flag"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

var everyPair = flag.Bool("every", false, "have every CLI meet every behaviour of a hostile provider, and not one CLI each")

// hostileCLI is a CLI with the protocol in which it meets the provider.
type hostileCLI struct{ kind, protocol, wire, model string }

var hostileCLIs = []hostileCLI{
	{"codex", OpenAI, "responses", "gpt-5.5"}, {"claude", Anthropic, "messages", "claude-opus-4-8"}, {"gemini", Gemini, "gemini", "gemini-2.5-pro"},
	{"opencode", OpenAI, "chat", "mock-model"}, {"qwen", OpenAI, "chat", "mock-model"},
}

const (
	// hostileAnswers is how often a provider behaves so; then it says a word, so that what asks on and on comes to an end.
	hostileAnswers = 12
	// hostileCalls bounds the calls of a run: a CLI tries three times at most where it can be told, and has side requests.
	hostileCalls = 40
	hostileTime  = 40 * time.Second
)

// TestRealAgentsMeetAHostileProvider has the real CLIs, started as attempts start them, meet the behaviours through the
// gateway. A limit and a fruitless attempt end the run, as they end an attempt. Each behaviour is met by one CLI, in
// turns; -every has every CLI meet each.
func TestRealAgentsMeetAHostileProvider(t *testing.T) {
	if testing.Short() {
		t.Skip("needs the agent CLIs, which make check does without")
	}
	all := behaviours()
	busy := make(chan struct{}, 4)
	for i, what := range slices.Sorted(maps.Keys(all)) {
		for j, cli := range hostileCLIs {
			if !*everyPair && i%len(hostileCLIs) != j {
				continue
			}
			t.Run(cli.kind+"/"+what, func(t *testing.T) {
				t.Parallel()
				busy <- struct{}{}
				defer func() { <-busy }()
				meet(t, cli, all[what])
			})
		}
	}
}

func meet(t *testing.T, cli hostileCLI, b behaviour) {
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, cli.kind)); err != nil {
		t.Skipf("%s is not installed; .ci/setup installs it", cli.kind)
	}
	w := wires()[cli.wire]
	var calls atomic.Int32
	behaves, ends := b.answer(w), sse(w.stream("b", script{text: "Done."})...)
	p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
		if calls.Add(1) > hostileAnswers {
			ends(rw, r)
			return
		}
		behaves(rw, r)
	})
	ctx, cancel := context.WithTimeout(t.Context(), hostileTime)
	defer cancel()
	var limited atomic.Value
	s := open(t, cli.protocol, p.URL, func(g *Grant) {
		g.NoAnswerBytes = 4000
		g.OnLimit = func(l policy.Limit) {
			limited.CompareAndSwap(nil, l.Kind)
			cancel()
		}
		g.OnFruitless = func(string, bool) { cancel() }
	})
	printed := runHostile(ctx, t, bin, cli, s)
	u := s.settled()
	t.Logf("%d calls, last %q (%s), tokens %+v", calls.Load(), u.Last.Ending, u.Last.Why, u.Tokens)
	if strings.Contains(printed, testKey) || calls.Load() > hostileCalls {
		t.Errorf("the key is printed, or %d calls: %.2000s", calls.Load(), printed)
	}
	if calls.Load() == 0 {
		t.Fatalf("nothing was asked: %.2000s", printed)
	}
	if calls.Load() > hostileAnswers {
		return // it went on until the provider was a good one
	}
	if got, _ := limited.Load().(policy.Ending); got != b.limit {
		t.Errorf("the first limit is %q, want %q", got, b.limit)
	}
	if spoke := u.Input+u.Output > 0; spoke && !b.spoke {
		t.Errorf("booked %+v where no model spoke", u.Tokens)
	}
	if b.limit == "" && !b.spoke && u.Last.Ending != b.last {
		t.Errorf("the last answer came to %q (%s), want %q", u.Last.Ending, u.Last.Why, b.last)
	}
}

// runHostile runs a CLI until it ends or ctx does, which kills its group.
func runHostile(ctx context.Context, t *testing.T, bin string, cli hostileCLI, s *stand) string {
	t.Helper()
	a, err := clis.For(cli.kind, "")
	if err != nil {
		t.Fatal(err)
	}
	home, tree := t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	c, err := a.Command(agent.Request{
		Prompt: "Create hello.txt.", Dir: tree, Home: home, Model: cli.model, Argv: []string{filepath.Join(bin, cli.kind)},
		Env:      map[string]string{"PATH": bin + ":/usr/local/bin:/usr/bin:/bin", "TMPDIR": home},
		Endpoint: agent.Endpoint{Protocol: cli.protocol, URL: s.url, Token: s.Token()},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range c.Files {
		path := filepath.Join(home, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(ctx, c.Argv[0], c.Argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	var out strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tree, c.Env, strings.NewReader(c.Stdin), &out, &out, 5*time.Second
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return out.String()
}
