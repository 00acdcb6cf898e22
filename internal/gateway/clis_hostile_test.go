package gateway

import (
	"context"
	"flag"
	"fmt"
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

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/policy"
)

var everyPair = flag.Bool("every", false, "have every CLI meet every behaviour of a hostile provider, and not one CLI each")

// hostileCLI is a CLI with the protocol in which it meets the provider.
type hostileCLI struct{ kind, protocol, wire, model string }

var hostileCLIs = []hostileCLI{
	{"codex", OpenAI, "responses", "gpt-5.5"}, {"claude", Anthropic, "messages", "claude-opus-4-8"}, {"gemini", Gemini, "gemini", "gemini-2.5-pro"},
	{"opencode", OpenAI, "chat", "mock-model"}, {"qwen", OpenAI, "chat", "mock-model"},
}

// installed is the directory that holds the CLI; without it the test is skipped.
func (c hostileCLI) installed(t *testing.T) (bin string) {
	t.Helper()
	bin, err := filepath.Abs("../../testdata/clis/node_modules/.bin")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(bin, c.kind)); err != nil {
		t.Skipf("%s is not installed; .ci/setup installs it", c.kind)
	}
	return bin
}

// TestEveryCLISurvivesAHostileProvider: none of config's table is left out.
func TestEveryCLISurvivesAHostileProvider(t *testing.T) {
	for _, kind := range config.CLIs() {
		if !slices.ContainsFunc(hostileCLIs, func(c hostileCLI) bool { return c.kind == kind }) {
			t.Errorf("hostileCLIs lacks %s", kind)
		}
	}
}

const (
	// seldom is which of the behaviours OpenCode meets: a start of it costs five times the processor time of another CLI's,
	// and Qwen Code speaks the same protocol.
	seldom = 9
	// hostileAnswers is how often a provider behaves so; then it says a word, so that what asks on and on comes to an end.
	hostileAnswers = 12
	// hostileCalls bounds the calls of a run: a CLI tries three times at most where it can be told, and has side requests.
	hostileCalls = 40
	// hostileTime is how long a run may go on after its first call; a busy machine may need minutes to make that.
	hostileTime, hostileStart = 40 * time.Second, 5 * time.Minute
)

// TestRealAgentsSurviveAHostileProvider has the real CLIs, started as attempts start them, meet the behaviours through the
// gateway. A limit and a fruitless attempt end the run, as they end an attempt. Each behaviour is met by one CLI, in
// turns, which come seldom to OpenCode; -every has every CLI meet each.
func TestRealAgentsSurviveAHostileProvider(t *testing.T) {
	needs.All(t, "the agent CLIs")
	all := behaviours()
	busy := make(chan struct{}, 4)
	for i, what := range slices.Sorted(maps.Keys(all)) {
		for j, cli := range hostileCLIs {
			if !*everyPair && turn(i) != j {
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

// turn is which CLI meets a behaviour.
func turn(behaviour int) (cli int) {
	openCode := slices.IndexFunc(hostileCLIs, func(c hostileCLI) bool { return c.kind == "opencode" })
	if behaviour%seldom == seldom-1 {
		return openCode
	}
	if cli = behaviour % (len(hostileCLIs) - 1); cli >= openCode {
		cli++
	}
	return cli
}

func meet(t *testing.T, cli hostileCLI, b behaviour) {
	cli.installed(t)
	w := wires()[cli.wire]
	var calls atomic.Int32
	behaves, ends := b.answer(w), sse(w.stream("b", script{text: "Done."})...)
	ctx, cancel := context.WithTimeout(t.Context(), hostileStart)
	defer cancel()
	p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
		switch n := calls.Add(1); {
		case n > hostileAnswers:
			ends(rw, r)
			return
		case n == 1:
			time.AfterFunc(hostileTime, cancel)
		}
		behaves(rw, r)
	})
	var limited atomic.Value
	s := open(t, cli.protocol, p.URL, func(g *Grant) {
		g.NoAnswerBytes = 4000
		g.OnLimit = func(l policy.Limit) {
			limited.CompareAndSwap(nil, l.Kind)
			cancel()
		}
		g.OnFruitless = func(string, bool) { cancel() }
	})
	printed, _ := runHostile(ctx, t, cli, s)
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

// TestRealAgentsRetryRarelyAndWaitSeconds has each CLI meet a provider that is overloaded for good, which it
// must leave after a few tries or be ended for, and one that asks to come back in two seconds, where nothing is to end it:
// it waits itself, or leaves with the limit, which is the run's then.
func TestRealAgentsRetryRarelyAndWaitSeconds(t *testing.T) {
	needs.All(t, "the agent CLIs")
	waits := map[string]bool{"claude": true, "gemini": true, "opencode": true} // codex leaves at once, qwen asks sixty seconds later
	busy := make(chan struct{}, 3)
	for _, cli := range hostileCLIs {
		for _, wait := range []bool{false, true} {
			if wait && !waits[cli.kind] {
				continue
			}
			t.Run(fmt.Sprintf("%s/%t", cli.kind, wait), func(t *testing.T) {
				t.Parallel()
				busy <- struct{}{}
				defer func() { <-busy }()
				cli.installed(t)
				w := wires()[cli.wire]
				ctx, cancel := context.WithTimeout(t.Context(), hostileStart)
				defer cancel()
				var calls atomic.Int32
				ends := sse(w.stream("b", script{text: "Done."})...)
				p := newProvider(t, func(rw http.ResponseWriter, r *http.Request) {
					switch n := calls.Add(1); {
					case wait && n > 1:
						ends(rw, r)
					case wait:
						plain(429, `{"error":{"message":"slow down"}}`, "Retry-After", "2")(rw, r)
					default:
						if n == 1 {
							time.AfterFunc(2*time.Minute, cancel) // the last bound of those that ask on and on
						}
						plain(503, `{"error":{"message":"overloaded"}}`)(rw, r)
					}
				})
				s := open(t, cli.protocol, p.URL, nil)
				printed, _ := runHostile(ctx, t, cli, s)
				u := s.settled()
				t.Logf("%d calls, last %+v, limit %+v", calls.Load(), u.Last, u.Limit)
				if wait && (u.Last.Ending != policy.Completed || u.Limit != nil || ctx.Err() != nil) {
					t.Errorf("it did not wait: %+v\n%.2000s", u, printed)
				}
				if n := calls.Load(); !wait && (n == 0 || n > mostTries || u.Limit == nil || u.Limit.Kind != policy.Overloaded) {
					t.Errorf("%d calls, limit %+v\n%.2000s", n, u.Limit, printed)
				}
			})
		}
	}
}

// mostTries is how often any of the CLIs asks a provider that is overloaded within two minutes, side requests included.
const mostTries = 16

// runHostile runs a CLI in a repository of its own until it ends or ctx does, which kills its group. It returns what the
// CLI printed, and the repository.
func runHostile(ctx context.Context, t *testing.T, cli hostileCLI, s *stand) (printed, tree string) {
	t.Helper()
	bin := cli.installed(t)
	a, err := clis.For(cli.kind, "")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	tree = t.TempDir()
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
	return out.String(), tree
}
