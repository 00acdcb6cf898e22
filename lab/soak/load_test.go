package soak

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/crash/crashtest"
	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/lab/rig"
)

// writer may write in all repositories.
const writer = rig.Writer

// patience limits each wait. It is long, so that a busy machine fails no test.
const patience = 10 * time.Minute

// soak is one server, or three servers on one database. The test kills them at random while users ask for work.
type soak struct {
	*rig.Rig
	t       *testing.T
	log     *os.File // the log of all servers
	nodes   []*node
	repos   []string
	threads []place
	calm    atomic.Bool // whether the random kills have ended
	orderly bool        // whether servers are stopped with SIGTERM instead of killed
	spray   *spray

	mu     sync.Mutex // guards chance, which all supervisors use
	chance *rand.Rand
}

// node is one of the servers.
type node struct {
	*crashtest.Lives
	long atomic.Bool // whether the current process is killed only rarely
}

// place is an issue in a repository.
type place struct {
	repo   string
	number int
}

// settings raise the limits: a soak makes more attempts in an hour than the defaults allow in a day.
const settings = `policy:
  restarts: {backoff_cap: 2s}
  caps: {per_repository_per_day: 100000, per_installation_per_day: 100000, per_server_per_day: 100000, per_account_per_day: 100000}
workers: 6
log: {level: debug}
`

func newSoak(t *testing.T, seed uint64) *soak {
	t.Helper()
	s := &soak{
		t:       t,
		log:     logFile(t),
		orderly: orderly(t, os.Getenv("SOAK_SIGNAL")),
		chance:  rand.New(rand.NewPCG(seed, 1)),
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "pawl")
	root, err := rig.ProjectRoot(t.Context())
	s.must(err)
	s.must(rig.BuildGo(t.Context(), root, bin, "./cmd/pawl", "-tags", "crashpoints"))
	first := &node{Lives: crashtest.New(t, bin)}
	s.Rig, err = rig.NewAt(t.Context(), first.Now, bin, dir, moody, "plain, timeout: 3s", "none", settings)
	s.must(err)
	t.Cleanup(func() { s.must(s.Close()) })
	s.must(s.Rewrite(`pages: "127.0.0.1:0"`, `pages: "127.0.0.1:0", drain: 0s`))
	shared := os.Getenv("SOAK_DATABASE") == "postgres"
	if shared {
		db := postgrestest.Start(t)
		s.must(s.UseDatabase(db.Address(db.NewDatabase(t, ""))))
	}
	// An orderly stop leaves no lease to expire. In PostgreSQL leases expire by the database's clock, and tests cannot move it.
	inTime := shared || s.orderly
	repos := soakRepos
	if inTime {
		first.Pause = 0
		repos = soakReposInTime
	}
	for i := range repos {
		repo := fmt.Sprintf("team%d/app", i)
		s.must(s.World.AddRepo(t.Context(), repo, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: [\"test -s a.txt\"]\n"}))
		s.must(s.World.SetRole(repo, writer, "write"))
		s.must(s.World.Install(repo))
		s.repos = append(s.repos, repo)
	}
	s.add(first)
	s.sprayed()
	s.begin()
	for shared && len(s.nodes) < 3 {
		n := &node{Lives: crashtest.New(t, bin)}
		n.Pause = 0
		s.add(n)
		n.Begin()
	}
	return s
}

// logFile creates the servers' log file. It is kept if the test fails.
func logFile(t *testing.T) *os.File {
	t.Helper()
	log, err := os.Create(filepath.Join(os.TempDir(), fmt.Sprintf("pawl-soak-%d.log", os.Getpid())))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		log.Close()
		if t.Failed() {
			t.Logf("the log is %s", log.Name())
			return
		}
		os.Remove(log.Name())
	})
	return log
}

// add adds a server to the soak.
func (s *soak) add(n *node) {
	n.World, n.Dir, n.Data, n.Read, n.Log = s.World, s.Dir, "data", s.read, s.log
	n.Env, n.Orderly = s.envOf(n), s.orderly
	s.nodes = append(s.nodes, n)
}

func (s *soak) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// read opens the database for reading while the servers run, and calls f.
func (s *soak) read(f func(*store.Store)) {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), s.Database(), store.Options{Now: s.nodes[0].Now, Access: store.Reading})
	s.must(err)
	defer db.Close()
	f(db)
}

// begin starts the first server and waits until it has listed GitHub's deliveries once. From then on, the server's search
// for missed deliveries has a starting point.
func (s *soak) begin() {
	s.t.Helper()
	s.calm.Store(true)
	defer s.calm.Store(false)
	first := s.nodes[0]
	first.Begin()
	first.Serving()
	ctx, cancel := context.WithTimeout(s.t.Context(), patience)
	defer cancel()
	s.must(s.Until(ctx, "the first look at the deliveries", func() (bool, error) {
		return s.World.Calls()["GET /app/hook/deliveries"] > 0, nil
	}))
}

// envOf returns the environment of a node's processes: a seed, and a small chance to die at each crash point. One process in
// four is marked as long.
func (s *soak) envOf(n *node) func(int) []string {
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

// n draws a random number below a limit.
func (s *soak) n(below int) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.chance.IntN(below)
}

// died returns the deaths of all nodes' processes.
func (s *soak) died() (all []crashtest.Death) {
	for _, n := range s.nodes {
		all = append(all, n.Died()...)
	}
	return all
}

// load lets users ask for work and kills servers, until there were enough kills or the time is over. It returns the number
// of deaths.
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
		// Most processes live only for a short time, some not even until the server has started. Others live long enough
		// for an attempt.
		if n := s.nodes[s.n(len(s.nodes))]; !n.long.Load() && (n.Serves() && s.n(3) == 0 || s.n(40) == 0) || n.Serves() && s.n(30) == 0 {
			n.Kill()
		}
		for _, n := range s.nodes {
			if err := n.Failed(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// ask opens an issue and asks Pawl to solve it.
func (s *soak) ask() {
	s.t.Helper()
	repo := s.repos[s.n(len(s.repos))]
	number, err := s.World.OpenIssue(repo, writer, "A line", "Please add a line to a.txt.")
	s.must(err)
	_, err = s.World.Comment(repo, number, writer, "/pawl solve")
	s.must(err)
	s.threads = append(s.threads, place{repo, number})
}

// remark comments on an existing issue. Commands have new words each time, because repeated words start few attempts.
func (s *soak) remark() {
	s.t.Helper()
	at := s.threads[s.n(len(s.threads))]
	words := []string{"/pawl status", "/pawl why", "Thank you so far.", "Please add one more line.", "/pawl solve one more line, of ", "/pawl retry with "}
	for i, command := range words[4:] {
		for range 8 {
			command += string(rune('a' + s.n(26)))
		}
		words[4+i] = command
	}
	_, err := s.World.Comment(at.repo, at.number, writer, words[s.n(len(words))])
	s.must(err)
}
