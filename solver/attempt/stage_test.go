package attempt

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// stage runs attempts on a local repository with real git, verify commands and agents, but without a server or GitHub.
// The repository's files and the agent may use $CTRL, a folder that they share with the test.
type stage struct {
	t            *testing.T
	origin, ctrl string
	yaml         string // the server's configuration
	env          *Env
	holders      map[int]*lease.Holder // by the number of the issue
	done         map[int]int           // attempts of each issue
	ground       *Ground               // the newest attempt's
}

func newStage(t *testing.T, files map[string]string) *stage {
	t.Helper()
	dir := t.TempDir()
	s := &stage{t: t, origin: filepath.Join(dir, "origin"), ctrl: filepath.Join(dir, "ctrl"), holders: map[int]*lease.Holder{}, done: map[int]int{}}
	s.yaml = "data_dir: " + strconv.Quote(filepath.Join(dir, "data")) + "\n"
	s.must(os.Mkdir(s.ctrl, 0o700))
	s.must(os.Mkdir(s.origin, 0o700))
	s.git("init", "--quiet", "--initial-branch=main")
	s.push(files)
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "pawl.db"), store.Options{})
	s.must(err)
	t.Cleanup(func() { db.Close() })
	s.env = &Env{
		Store: db, Node: "node", Place: "here", Now: time.Now, Log: zerolog.Nop(), Lookup: os.LookupEnv, Stopping: make(chan struct{}),
		Gateway: gateway.New(gateway.Options{Now: time.Now, Log: zerolog.Nop(), Transport: &http.Transport{}}),
	}
	return s
}

func (s *stage) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *stage) git(args ...string) string {
	s.t.Helper()
	args = append([]string{"-C", s.origin, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)
	out, err := exec.Command("git", args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("git %s: %v\n%s", args, err, out)
	}
	return string(out)
}

// push changes files of the default branch.
func (s *stage) push(files map[string]string) {
	s.t.Helper()
	for name, content := range files {
		path := filepath.Join(s.origin, name)
		s.must(os.MkdirAll(filepath.Dir(path), 0o700))
		s.must(os.WriteFile(path, []byte(strings.ReplaceAll(content, "$CTRL", s.ctrl)), 0o600))
	}
	s.git("add", "--all")
	s.git("commit", "--quiet", "--message=Change")
}

// agent makes a shell script the only backend. more holds fields of the backend and, after a line break, of the
// configuration.
func (s *stage) agent(script, more string) {
	s.t.Helper()
	path := filepath.Join(s.ctrl, "agent.sh")
	s.must(os.WriteFile(path, []byte("#!/bin/sh\nCTRL='"+s.ctrl+"'\ncat > /dev/null\n"+script), 0o700))
	fields, keys, _ := strings.Cut(more, "\n")
	s.yaml += "backends: [{name: mine, kind: command, argv: [" + strconv.Quote(path) + "]" + fields + "}]\n" + keys
}

// provider connects agents to a fake model provider that plays a scenario in a protocol.
func (s *stage) provider(protocol, scenario string) *fakeprovider.Server {
	s.t.Helper()
	p, err := fakeprovider.Start(fakeprovider.Options{Key: "sk-of-the-provider"})
	s.must(err)
	s.t.Cleanup(func() { p.Close() })
	base := p.URL(scenario)
	if protocol == "openai" {
		base += "/v1"
	}
	s.yaml += "providers: [{name: fake, protocol: " + protocol + ", base_url: " + base + ", key: sk-of-the-provider}]\n"
	return p
}

// hold takes an issue's lease once.
func (s *stage) hold(issue int) *lease.Holder {
	s.t.Helper()
	if h := s.holders[issue]; h != nil {
		return h
	}
	held, err := s.env.Store.Acquire(s.t.Context(), thread.ID{Owner: "acme", Name: "widgets", Number: issue}, s.env.Node)
	s.must(err)
	_, h := lease.Hold(s.t.Context(), s.env.Store, held, time.Now(), time.Now)
	s.t.Cleanup(func() { h.Release(nil) })
	s.holders[issue] = h
	return h
}

// attempt returns the receipt of the issue's next attempt, which must begin.
func (s *stage) attempt(issue int) policy.Receipt {
	s.t.Helper()
	a, refused := s.tried(issue)
	if refused != nil {
		s.t.Fatalf("the attempt was refused: %+v", refused)
	}
	return a.Receipt
}

// tried returns the issue's next attempt, or the reason why none can run.
func (s *stage) tried(issue int) (*Attempt, *thread.Decided) {
	s.t.Helper()
	text := s.yaml
	if !strings.Contains(text, "sandbox: ") {
		text += "sandbox: {mode: none}\n"
	}
	server, err := config.Parse("pawl.yml", []byte(text), os.LookupEnv, false)
	s.must(err)
	if s.env.Sandbox == nil {
		s.env.Config = server
		s.env.Sandbox, err = sandbox.New(s.t.Context(), sandbox.Mode(server.Sandbox.Mode))
		s.must(err)
		s.env.UseLayers(LayersIn(server.DataDir))
	}
	id := thread.ID{Owner: "acme", Name: "widgets", Number: issue}
	s.ground = &Ground{
		Lease: s.hold(issue), Log: s.env.Log, Branch: branchOf(issue),
		Remote: func(context.Context, bool) (git.Remote, error) { return git.Remote{URL: s.origin}, nil },
	}
	refused, err := s.ground.Fetch(s.t.Context(), s.env, &server, id, thread.Details{DefaultBranch: "main"}, nil)
	s.must(err)
	if refused != nil {
		return nil, refused
	}
	s.done[issue]++
	a := &Attempt{
		Env: s.env, Config: &server, Thread: id, Lease: s.ground.Lease, Log: s.env.Log, Ground: s.ground, Author: "pawl", Email: "pawl@localhost",
		Started: thread.Started{N: s.done[issue], Run: 1, Backend: "mine", Kind: "command", Base: s.ground.Start, Decision: policy.Decision{Purpose: policy.ToChange}},
		Release: func() {}, Attend: func(context.Context) {}, Allowed: func(context.Context) error { return nil },
	}
	refused, err = a.VerifyBase(s.t.Context())
	s.must(err)
	if refused != nil {
		return nil, refused
	}
	s.must(a.Run(s.t.Context(), NewCheckout(a)))
	return a, nil
}

func branchOf(issue int) string { return fmt.Sprintf("pawl/issue-%d", issue) }

// left returns the content of a file in $CTRL, or "".
func (s *stage) left(name string) string {
	b, _ := os.ReadFile(filepath.Join(s.ctrl, name))
	return string(b)
}

// on returns a file on the issue's branch.
func (s *stage) on(issue int, file string) string {
	s.t.Helper()
	return s.git("show", branchOf(issue)+":"+file)
}

// verifying returns a repository with a verify command, a file a.txt, an ignored folder bin, and more files.
func verifying(command string, more map[string]string) map[string]string {
	files := map[string]string{"a.txt": "one\n", ".gitignore": "bin/\n", config.RepoFile: "verify:\n- |\n  " + command + "\n"}
	maps.Copy(files, more)
	return files
}
