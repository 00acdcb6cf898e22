package arena

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/lab/rig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// The users of every stage.
const (
	writer = rig.Writer
	reader = rig.Reader
)

// patience bounds each wait. It is long, so that no test fails because the machine is busy.
const patience = 10 * time.Minute

// stage is a fake GitHub and a server in this process. The test moves the clock of both.
type stage struct {
	*rig.Rig
	t     *testing.T
	ahead *clock
	store *store.Store // the server's database, opened for reading
}

// newStage creates the fake GitHub and the server's configuration. The agent's script is the program of two backends, mine
// and codex.
func newStage(t *testing.T, more string) *stage {
	t.Helper()
	s := &stage{t: t, ahead: &clock{}}
	dir := t.TempDir()
	more = fmt.Sprintf("  - {name: codex, kind: command, stream: codex, argv: [%q], account: paid}\n%s", filepath.Join(dir, "agent.sh"), more)
	var err error
	s.Rig, err = rig.NewAt(t.Context(), s.ahead.now, "", dir, "", "plain, account: free", "none", more)
	s.must(err)
	t.Cleanup(func() { s.must(s.Close()) })
	s.must(os.Mkdir(s.ctrl(), 0o700))
	return s
}

func (s *stage) agent(script string) {
	s.t.Helper()
	s.must(os.WriteFile(filepath.Join(s.Dir, "agent.sh"), []byte(script), 0o700))
}

func (s *stage) begin() {
	s.t.Helper()
	cfg, err := config.Load(filepath.Join(s.Dir, "pawl.yml"), os.LookupEnv)
	s.must(err)
	cfg.HTTP.Address, cfg.HTTP.Drain = "127.0.0.1:0", 0
	log, err := os.Create(filepath.Join(s.Dir, "server.log"))
	s.must(err)
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.t.Context()))
	node := server.New(cfg, server.Deps{
		Now:   s.ahead.now,
		Log:   zerolog.New(zerolog.SyncWriter(log)).With().Timestamp().Logger(),
		Build: web.Build{Version: "arena"},
	})
	served, err := node.Start(ctx)
	s.t.Cleanup(func() {
		cancel()
		if served != nil {
			err = <-served
		}
		log.Close()
		if err != nil || s.t.Failed() {
			s.t.Errorf("the server ended: %v; the end of its log:\n%s", err, s.LogEnd())
		}
	})
	s.must(err)
	s.Addr = node.Address()
	s.World.SetWebhookURL(s.URL("/api/github/hook"))
	s.store, err = store.Open(s.t.Context(), s.Database(), store.Options{Now: s.ahead.now, Access: store.Reading})
	s.must(err)
	s.t.Cleanup(func() { s.store.Close() })
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// await waits until cond holds.
func (s *stage) await(what string, cond func() bool) {
	s.t.Helper()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	s.must(s.Until(ctx, what, func() (bool, error) { return cond(), nil }))
}

// ctrl returns a folder that the agents share with the test.
func (s *stage) ctrl() string { return filepath.Join(s.Dir, "ctrl") }

// attempts returns the threads of all attempts so far, one per line.
func (s *stage) attempts() string {
	made, _ := os.ReadFile(filepath.Join(s.ctrl(), "attempts")) // the file does not exist before the first attempt
	return string(made)
}

// reach moves the clock to just after a time.
func (s *stage) reach(at time.Time) { s.ahead.reach(at) }

// state returns a thread's state, folded from its log.
func (s *stage) state(id thread.ID) thread.State {
	s.t.Helper()
	events, err := s.store.Events(s.t.Context(), id, 0)
	s.must(err)
	state, err := thread.Fold(events)
	s.must(err)
	return state
}

// waitsForTheDay reports whether a thread waits for its own daily limit or for its repository's.
func (s *stage) waitsForTheDay(id thread.ID) bool {
	s.t.Helper()
	state := s.state(id)
	_, running := state.Running()
	if running || state.Decision == nil || state.Decision.Action != policy.DoWait {
		return false
	}
	rule := state.Decision.Rule
	return rule == policy.RuleCap || rule == policy.RuleDailyCap
}

// clock is a clock that a test can move ahead. It also runs, so that consecutive events have different times.
type clock struct {
	mu    sync.Mutex
	ahead time.Duration
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return time.Now().Add(c.ahead)
}

// reach moves the clock to just after a time, if it is not there yet.
func (c *clock) reach(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ahead = max(c.ahead, time.Until(t)+time.Second)
}
