package soak

import (
	"encoding/json"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/solver/thread"
)

// starts collects the repositories of a node's attempts from the node's log.
type starts struct {
	mu    sync.Mutex
	repos []string // a repository for each attempt
}

// Write reads one line of the log.
func (s *starts) Write(line []byte) (int, error) {
	var entry struct{ Message, Thread string }
	if json.Unmarshal(line, &entry) == nil && entry.Message == "attempt started" {
		repo, _, _ := strings.Cut(entry.Thread, "#")
		s.mu.Lock()
		defer s.mu.Unlock()
		s.repos = append(s.repos, repo)
	}
	return len(line), nil
}

func (s *starts) list() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.repos[:len(s.repos):len(s.repos)]
}

// invariants checks that nothing was lost, doubled or forgotten, and where attempts ran.
func (s *soak) invariants(states map[string]thread.State) {
	s.t.Helper()
	s.nodes[0].InvariantsAfter(s.died(), states, s.repos...)
	for _, n := range s.nodes[1:] {
		n.NoWork()
	}
	s.judge()
	s.placed()
	s.pushedOnce(states)
}

// placed checks that every attempt started on a node with the label that its repository needs.
func (s *soak) placed() {
	s.t.Helper()
	all := 0
	for i, n := range s.nodes {
		started := n.list()
		all += len(started)
		for _, repo := range started {
			if need := s.needs[repo]; need != "" && need != n.label {
				s.t.Errorf("node %d, with the label %q, started an attempt of %s, which needs %q", i, n.label, repo, need)
			}
		}
		s.t.Logf("node %d, with the label %q, has started %d attempts", i, n.label, len(started))
	}
	if all == 0 {
		s.t.Error("no node has logged the start of an attempt")
	}
}

// pushedOnce checks that every push to Pawl's branches holds the commit of one attempt. No commit may be pushed twice.
func (s *soak) pushedOnce(states map[string]thread.State) {
	s.t.Helper()
	times := map[string]int{} // by commit, how many attempts recorded it
	for _, state := range states {
		for _, a := range state.Attempts {
			times[a.Receipt.Commit]++
		}
	}
	pushed := map[string]bool{}
	for _, repo := range s.repos {
		for _, p := range s.World.Pushes(repo) {
			if !strings.HasPrefix(p.Branch, thread.BranchPrefix) {
				continue
			}
			if times[p.After] != 1 || pushed[p.After] {
				s.t.Errorf("%s: %d attempts recorded the push %+v; pushed before: %t", repo, times[p.After], p, pushed[p.After])
			}
			pushed[p.After] = true
		}
	}
	if len(pushed) == 0 {
		s.t.Error("no attempt was pushed")
	}
}
