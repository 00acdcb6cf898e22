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

// hostileCLI is a CLI and its provider's protocol.
type hostileCLI struct{ kind, protocol, wire, model string }

var hostileCLIs = []hostileCLI{
	{"codex", OpenAI, "responses", "gpt-5.5"}, {"claude", Anthropic, "messages", "claude-opus-4-8"}, {"gemini", Gemini, "gemini", "gemini-2.5-pro"},
	{"opencode", OpenAI, "chat", "mock-model"}, {"qwen", OpenAI, "chat", "mock-model"},
}

// installed returns the folder of the CLIs' executables, or skips the test.
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

// TestEveryCLISurvivesAHostileProvider checks that hostileCLIs has every CLI of config.
func TestEveryCLISurvivesAHostileProvider(t *testing.T) {
	for _, kind := range config.CLIs() {
		if !slices.ContainsFunc(hostileCLIs, func(c hostileCLI) bool { return c.kind == kind }) {
			t.Errorf("hostileCLIs lacks %s", kind)
		}
	}
}

const (
	// seldom limits OpenCode to every ninth behaviour. OpenCode takes five times as much processor time to start as
	// other CLIs, and Qwen Code uses the same protocol.
	seldom = 9
	// hostileAnswers limits the hostile answers. Then the provider sends a good one, so that endless callers end.
	hostileAnswers = 12
	// hostileCalls limits a run's calls: a CLI retries at most three times if it has a setting for that, and sends
	// side requests.
	hostileCalls = 40
	// hostileTime limits a run after its first call, hostileStart the whole run: a busy machine takes minutes to start.
	hostileTime, hostileStart = 40 * time.Second, 5 * time.Minute
)

// TestRealAgentsSurviveAHostileProvider runs the real CLIs, started as in attempts, against each behaviour through
// the gateway. Limits and fruitless calls end the run, as they end an attempt. CLIs take turns, OpenCode rarely; with
// -every each CLI gets each behaviour.
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

// turn returns the index of the CLI for a behaviour.
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
		t.Fatalf("the CLI made no call: %.2000s", printed)
	}
	if calls.Load() > hostileAnswers {
		return // it continued until the provider gave a good answer
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

// TestRealAgentsRetryRarelyAndWaitSeconds runs each CLI against two providers. One is always overloaded: the CLI must
// give up after a few tries or be ended. The other asks to retry in two seconds: nothing may end the CLI, which waits
// or gives up with the limit.
func TestRealAgentsRetryRarelyAndWaitSeconds(t *testing.T) {
	needs.All(t, "the agent CLIs")
	waits := map[string]bool{"claude": true, "gemini": true, "opencode": true} // codex gives up at once; qwen asks again after sixty seconds
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
							time.AfterFunc(2*time.Minute, cancel) // ends CLIs that ask endlessly
						}
						plain(503, `{"error":{"message":"overloaded"}}`)(rw, r)
					}
				})
				s := open(t, cli.protocol, p.URL, nil)
				printed, _ := runHostile(ctx, t, cli, s)
				u := s.settled()
				t.Logf("%d calls, last %+v, limit %+v", calls.Load(), u.Last, u.Limit)
				if wait && (u.Last.Ending != policy.Completed || u.Limit != nil || ctx.Err() != nil) {
					t.Errorf("the CLI did not wait: %+v\n%.2000s", u, printed)
				}
				if n := calls.Load(); !wait && (n == 0 || n > mostTries || u.Limit == nil || u.Limit.Kind != policy.Overloaded) {
					t.Errorf("%d calls, limit %+v\n%.2000s", n, u.Limit, printed)
				}
			})
		}
	}
}

// mostTries limits a CLI's calls to an overloaded provider within two minutes, including side requests.
const mostTries = 16

// runHostile runs a CLI in a new repository until it ends, or until ctx ends and kills its group. It returns the
// output and the repository.
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
