package main

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// soak is one server, or three on one database, that are killed all the time
// while people ask for work.
type soak struct {
	t       *testing.T
	nodes   []*lives
	repos   []string
	threads []place
	calm    atomic.Bool // nobody dies by chance any more
	orderly bool        // every restart is a SIGTERM
	spray   *spray

	mu     sync.Mutex // of chance, which all supervisors draw from
	chance *rand.Rand
}

// place is an issue in a repository.
type place struct {
	repo   string
	number int
}

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{t: t, chance: rand.New(rand.NewPCG(seed, 1))}
	first := newLives(t, nil)
	first.agent(moody, "timeout: 3s")
	// A soak makes more attempts in an hour than a server may in a day by default.
	first.config += "policy: {restarts: {backoff_cap: 2s}, caps: {per_repository_per_day: 100000, per_installation_per_day: 100000, per_server_per_day: 100000, per_account_per_day: 100000}}\nworkers: 6\n"
	log, err := os.Create(filepath.Join(os.TempDir(), fmt.Sprintf("pawl-soak-%d.log", os.Getpid())))
	first.must(err)
	t.Cleanup(func() {
		log.Close()
		if t.Failed() {
			t.Logf("the log is %s", log.Name())
			return
		}
		os.Remove(log.Name())
	})
	first.sink, first.env = log, s.envOf(first)
	shared := os.Getenv("SOAK_DATABASE") == "postgres"
	if s.orderly = orderly(t, os.Getenv("SOAK_SIGNAL")); s.orderly {
		first.orderly, first.pause = true, 0 // who stops in order leaves no lease behind
	}
	repos := soakRepos
	if shared || s.orderly {
		repos = soakReposInTime
	}
	for i := range repos {
		repo := fmt.Sprintf("team%d/app", i)
		first.must(first.world.AddRepo(t.Context(), repo, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"test -s a.txt\"]\n"}))
		first.must(first.world.SetRole(repo, writer, "write"))
		first.must(first.world.Install(repo))
		s.repos = append(s.repos, repo)
	}
	s.nodes = []*lives{first}
	s.sprayed()
	if !shared {
		s.begin()
		return s
	}
	// Leases go by the database's clock, which no test moves.
	first.dsn, first.pause = startPostgres(t).newDatabase(t), 0
	s.begin()
	for range 2 {
		shared := *first.rig
		n := &lives{rig: &shared, binary: first.binary, sink: log, orderly: s.orderly, ready: make(chan struct{}), over: make(chan error, 1)}
		n.env = s.envOf(n)
		n.address()
		n.join(filepath.Join(first.dir, "pawl.yml"))
		s.nodes = append(s.nodes, n)
	}
	return s
}

// begin lets the first server begin and live until it knows from when on it has to
// ask GitHub for what it missed: from its first look at the deliveries.
func (s *soak) begin() {
	s.t.Helper()
	s.calm.Store(true)
	defer s.calm.Store(false)
	first := s.nodes[0]
	first.begin()
	first.serving()
	first.await("the first look at the deliveries", func() bool { return first.world.Calls()["GET /app/hook/deliveries"] > 0 })
}

// envOf gives each life of a node a seed, and a small chance to die at each point
// that it passes. One life in four is long.
func (s *soak) envOf(n *lives) func(int) []string {
	return func(int) []string {
		s.mu.Lock()
		defer s.mu.Unlock()
		seed, long := s.chance.Uint64(), s.chance.IntN(4) == 0
		p := []float64{0.002, 0.01, 0.05}[s.chance.IntN(3)]
		if long {
			p = 0.001
		}
		n.long.Store(long)
		if s.calm.Load() || s.orderly {
			return nil
		}
		return []string{fmt.Sprintf("PAWL_CRASH_RANDOM=%d,%g", seed, p)}
	}
}

// n draws a number below a bound.
func (s *soak) n(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.IntN(below)
}

// died is how all lives of all nodes ended.
func (s *soak) died() (all []death) {
	for _, n := range s.nodes {
		all = append(all, n.died()...)
	}
	return all
}

// load lets people ask for work and kills servers, until enough have died or the
// time is over. It returns how many have.
func (s *soak) load(kills int, until time.Time) (died int) {
	s.t.Helper()
	for before := len(s.died()); ; died = len(s.died()) - before {
		if died >= kills || time.Now().After(until) {
			return died
		}
		if float64(len(s.threads)) < soakThreads*float64(len(s.died()))+4 {
			s.ask()
		}
		time.Sleep(time.Duration(20+s.n(200)) * time.Millisecond)
		if s.n(3) == 0 {
			s.remark()
		}
		// Most lives are short, also shorter than their start, and some are long
		// enough for an attempt.
		if n := s.nodes[s.n(len(s.nodes))]; !n.long.Load() && (n.serves() && s.n(3) == 0 || s.n(40) == 0) || n.serves() && s.n(30) == 0 {
			n.kill()
		}
		for _, n := range s.nodes {
			if err := n.failed(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// ask opens an issue.
func (s *soak) ask() {
	s.t.Helper()
	repo, r := s.repos[s.n(len(s.repos))], s.nodes[0]
	number, err := r.world.OpenIssue(repo, writer, "A line", "Please add a line to a.txt.")
	r.must(err)
	_, err = r.world.Comment(repo, number, writer, "/pawl solve")
	r.must(err)
	s.threads = append(s.threads, place{repo, number})
}

// remark says something on an issue that is there, orders in new words, since what says
// again what was said begins few attempts.
func (s *soak) remark() {
	s.t.Helper()
	at, r := s.threads[s.n(len(s.threads))], s.nodes[0]
	words := []string{"/pawl status", "/pawl why", "Thank you so far.", "Please add one more line.", "/pawl solve one more line, of ", "/pawl retry with "}
	for i, order := range words[4:] {
		for range 8 {
			order += string(rune('a' + s.n(26)))
		}
		words[4+i] = order
	}
	_, err := r.world.Comment(at.repo, at.number, writer, words[s.n(len(words))])
	r.must(err)
}

// kill kills the server from outside, or asks it to stop.
func (l *lives) kill() {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.server == nil:
	case !l.orderly:
		_ = l.server.Process.Signal(syscall.SIGKILL) // it may be dead already
	case l.asked.IsZero(): // a second one would end it at once
		l.asked = time.Now()
		_ = l.server.Process.Signal(syscall.SIGTERM)
	}
}

// failed is why the supervisor gave up, if it did.
func (l *lives) failed() error {
	select {
	case err := <-l.over:
		l.over <- nil // for the end
		return err
	default:
		return nil
	}
}

// serves reports whether this life has got as far as that.
func (l *lives) serves() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.ready:
		return true
	default:
		return false
	}
}
