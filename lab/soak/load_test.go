package soak

import (
	"bytes"
	"context"
	"fmt"
	"io"
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
	threads []issue
	calm    atomic.Bool       // whether the random kills have ended
	needs   map[string]string // by repository, the label that its attempts need; empty for none
	orderly bool              // whether servers are stopped with SIGTERM instead of killed
	spray   *spray

	mu     sync.Mutex // guards chance, which all supervisors use
	chance *rand.Rand
}

// node is one of the servers.
type node struct {
	*crashtest.Lives
	label string // the only one of node.labels; empty for none
	starts
	long atomic.Bool // whether the current process is killed only rarely
}

type issue struct {
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
	labels := []string{""}
	s := &soak{
		t:       t,
		log:     logFile(t),
		needs:   map[string]string{},
		orderly: orderly(t, os.Getenv("SOAK_SIGNAL")),
		chance:  rand.New(rand.NewPCG(seed, 1)),
	}
	dir := t.TempDir()
	bin := filepath.Join(dir, "pawl")
	root, err := rig.ProjectRoot(t.Context())
	s.must(err)
	s.must(rig.BuildGo(t.Context(), root, bin, "./cmd/pawl", "-tags", "crashpoints"))
	shared := os.Getenv("SOAK_DATABASE") == "postgres"
	if shared {
		labels = soakLabels
	}
	for _, label := range labels {
		s.nodes = append(s.nodes, &node{Lives: crashtest.New(t, bin), label: label})
	}
	first := s.nodes[0]
	s.Rig, err = rig.NewAt(t.Context(), first.Now, bin, dir, moody, "plain, timeout: 3s", "none", settings)
	s.must(err)
	t.Cleanup(func() { s.must(s.Close()) })
	s.must(s.Rewrite(`pages: "127.0.0.1:0"`, `pages: "127.0.0.1:0", drain: 0s`))
	if shared {
		db := postgrestest.Start(t)
		s.must(s.UseDatabase(db.Address(db.NewDatabase(t, ""))))
	}
	// An orderly stop leaves no lease to expire. In PostgreSQL leases expire by the database's clock, and tests cannot move it.
	inTime := shared || s.orderly
	repos := soakRepos
	if inTime {
		repos = soakReposInTime
	}
	for i := range repos {
		s.addRepo(fmt.Sprintf("team%d/app", i), labels[i%len(labels)])
	}
	for i, n := range s.nodes {
		if inTime {
			n.Pause = 0
		}
		s.configure(i, n)
	}
	s.sprayed()
	s.begin()
	for _, n := range s.nodes[1:] {
		n.Begin()
	}
	return s
}

// addRepo creates a repository whose attempts need a label; empty for none.
func (s *soak) addRepo(repo, label string) {
	s.t.Helper()
	file := "verify: [\"test -s a.txt\"]\n"
	if label != "" {
		file += fmt.Sprintf("environment: {runs_on: [%s]}\n", label)
	}
	s.must(s.World.AddRepo(s.t.Context(), repo, map[string]string{"a.txt": "one\n", ".github/pawl.yml": file}))
	s.must(s.World.SetRole(repo, writer, "write"))
	s.must(s.World.Install(repo))
	s.repos = append(s.repos, repo)
	s.needs[repo] = label
}

// sharing is the number of nodes that share a data directory, as on one machine. Each other node has its own.
const sharing = 2

// configure prepares a node's processes. A node with a label has its own configuration.
func (s *soak) configure(i int, n *node) {
	s.t.Helper()
	n.World, n.Dir, n.Data, n.Read, n.Log = s.World, s.Dir, "data", s.read, io.MultiWriter(s.log, &n.starts)
	n.Env, n.Orderly = s.envOf(n), s.orderly
	text, err := os.ReadFile(filepath.Join(s.Dir, "pawl.yml"))
	s.must(err)
	if i >= sharing {
		n.Data = fmt.Sprint("data-", i)
		text = bytes.Replace(text, []byte("data_dir: data\n"), []byte("data_dir: "+n.Data+"\n"), 1)
	}
	if n.label != "" {
		text = fmt.Appendf(text, "node: {labels: [%s]}\n", n.label)
	}
	n.Config = fmt.Sprintf("pawl-%d.yml", i)
	s.must(os.WriteFile(filepath.Join(s.Dir, n.Config), text, 0o600))
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

// counts returns the number of kills and of orderly stops so far.
func (s *soak) counts() (kills, stops int) {
	for _, d := range s.died() {
		if d.Point == crashtest.Stopped {
			stops++
		} else {
			kills++
		}
	}
	return kills, stops
}

// load lets users ask for work, and kills and stops servers. It ends after enough kills and stops since the start, or
// when the time is over.
func (s *soak) load(kills, stops int, until time.Time) {
	s.t.Helper()
	for time.Now().Before(until) {
		killed, stopped := s.counts()
		if killed >= kills && stopped >= stops {
			return
		}
		if float64(len(s.threads)) < soakThreads*float64(killed+stopped)+4 {
			s.ask()
		}
		time.Sleep(time.Duration(20+s.n(200)) * time.Millisecond)
		if s.n(3) == 0 {
			s.remark()
		}
		if n := s.nodes[s.n(len(s.nodes))]; s.mayEnd(n) {
			if s.n(max(1, kills-killed)+max(0, stops-stopped)) < stops-stopped {
				n.Stop()
			} else {
				n.Kill()
			}
		}
		for _, n := range s.nodes {
			if err := n.Failed(); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// mayEnd draws whether a node's process ends now. Most processes live only for a short time, some not even until the
// server has started. Others live long enough for an attempt.
func (s *soak) mayEnd(n *node) bool {
	switch {
	case n.Serves() && s.n(30) == 0:
		return true
	case n.long.Load():
		return false
	case n.Serves():
		return s.n(3) == 0
	}
	return s.n(40) == 0
}

func (s *soak) ask() {
	s.t.Helper()
	repo := s.repos[s.n(len(s.repos))]
	number, err := s.World.OpenIssue(repo, writer, "A line", "Please add a line to a.txt.")
	s.must(err)
	_, err = s.World.Comment(repo, number, writer, "/pawl solve")
	s.must(err)
	s.threads = append(s.threads, issue{repo, number})
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
