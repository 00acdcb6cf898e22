package solver_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// repository is the content of a git server.
type repository struct {
	mu      sync.Mutex
	tips    map[string]string
	commits map[string]bool
}

func (r *repository) tip(branch string) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.tips[branch]
}

func (r *repository) has(commit string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.commits[commit]
}

func (r *repository) push(branch, from, to string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.tips[branch] != from && r.tips[branch] != to {
		return fmt.Errorf("push %s: %w", branch, git.ErrRejected)
	}
	r.tips[branch], r.commits[to] = to, true
	return nil
}

// agents play attempts and know their accounts' true limits.
type agents struct {
	mu      sync.Mutex
	until   map[string]time.Time // the end of an account's limit
	sources map[string]string    // the source of the reset: structured, text or none
}

// play draws an attempt. A seed and an attempt determine it, except for the account's limits.
func (g *agents) play(w *world, t thread.ID, a thread.Started) solver.Play {
	g.mu.Lock()
	defer g.mu.Unlock()
	r := w.chanceOf(fmt.Sprintf("%s/%d", t, a.N))
	p := solver.Play{Takes: time.Duration(r.Int64N(int64(5 * time.Second))), Diff: words(r, "diff")}
	if r.IntN(20) == 0 {
		p.Takes += 35 * time.Second
	}
	p.Report = agent.Report{CLI: "codex", Ending: policy.Completed, FinalMessage: words(r, "final"), Tokens: policy.Tokens{Input: 1000, Output: 10}}
	commit := fmt.Sprintf("%016x%016x%08x", r.Uint64(), r.Uint64(), r.Uint32())
	if r.IntN(3) > 0 {
		p.Commit = commit
	}
	fails := func(ending policy.Ending) {
		p.Report.Ending, p.Report.Failure = ending, words(r, "failure")
	}
	switch limit := g.until[a.Account]; {
	case time.Now().Before(limit):
		fails(policy.UsageLimit)
	default:
		g.draw(w, r, a, &p, commit, fails)
	}
	if p.Report.Ending == policy.UsageLimit {
		p.Commit = ""
		p.Report.Limit = &policy.Limit{Kind: policy.UsageLimit, Message: "You've hit your usage limit.", Source: g.sources[a.Account]}
		if reset := g.until[a.Account]; p.Report.Limit.Source != policy.SourceNone {
			if p.Report.Limit.Source == policy.SourceText {
				reset = reset.Truncate(time.Minute)
			}
			p.Report.Limit.ResetsAt = reset
		}
	}
	w.note("%s attempt %d plays %s for %v, commit %.6s %v", t, a.N, p.Report.Ending, p.Takes, p.Commit, p.Broken)
	return p
}

// draw chooses the ending of an attempt that its account allows.
func (g *agents) draw(w *world, r *rand.Rand, a thread.Started, p *solver.Play, commit string, fails func(policy.Ending)) {
	loops := func(n int) {
		p.Commit = commit
		p.Edits = policy.Edits{Operations: n, Files: 2, MaxRepeat: n / 3, MaxRepeatPath: "a.go"}
	}
	switch r.IntN(24) {
	case 0, 1, 2, 3, 4, 5:
		p.Commit = commit
	case 6, 7:
		p.Commit, p.Failed = commit, words(r, "test failed")
	case 8, 9, 10, 11:
		fails(policy.UsageLimit)
		lasts := []time.Duration{2 * time.Minute, 20 * time.Minute, 5 * time.Hour, 50 * time.Hour}[r.IntN(4)]
		if w.calm() {
			lasts = 5 * time.Minute
		}
		g.until[a.Account] = time.Now().Add(p.Takes + lasts).Truncate(time.Second)
		g.sources[a.Account] = []string{policy.SourceStructured, policy.SourceText, policy.SourceNone}[r.IntN(3)]
	case 12:
		loops(45)
	case 13:
		loops(70)
	case 14:
		loops(120)
		p.Cut = r.IntN(2) == 0
	case 15:
		fails(policy.Crashed)
	case 16:
		fails(policy.TimedOut)
	case 17:
		fails(policy.Auth)
	case 18:
		p.Commit = ""
		fails(policy.NoAnswer)
	case 19:
		fails([]policy.Ending{policy.RateLimited, policy.Overloaded, policy.Disconnected}[r.IntN(3)])
	case 20:
		fails([]policy.Ending{policy.Misconfigured, policy.ContextOverflow, policy.TurnLimit, policy.CutOff}[r.IntN(4)])
	case 21:
		if !w.calm() {
			p.Broken = fmt.Errorf("checkout: %w", []error{git.ErrUnavailable, git.ErrProtected, errDeaf}[r.IntN(3)])
		}
	}
}

// words draws a text from few words, so that attempts are sometimes similar.
func words(r *rand.Rand, about string) string {
	return fmt.Sprintf("%s: %s in module %d of the program, seen while it was run by the tests", about,
		[]string{"undefined name", "a value is nil that must not be", "expected one and got two"}[r.IntN(3)], r.IntN(2))
}
