package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/status"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/web"
)

// pawlBinary is the program under test, built once, without what debuggers read, as
// make build does.
var pawlBinary string

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InsideCommand { // this process is a server that runs a program
		os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
	}
	flag.Parse()
	if file := os.Getenv(nodeVariable); file != "" {
		// This process is a node of a cluster with a clock of its test.
		if err := serveAsNode(file, os.Getenv(clockVariable)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	dir, err := os.MkdirTemp("", "pawl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	pawlBinary = filepath.Join(dir, "pawl")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", pawlBinary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pawl: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// patience bounds everything that a test waits for; nothing waits for it when
// all is well. It is long, so that no test fails because others keep the machine
// busy.
const patience = 10 * time.Minute

// quick are the end-to-end tests that make check runs: each of the main ways through the program once.
var quick = []string{
	"TestAnIssueBecomesADraftPullRequest",
	"TestTheTextIsThatOfThePayload",
	"TestButtonsWorkForWritersOnly",
	"TestImmediateUsageLimitStopsAfter3",
	"TestAStopEndsVerificationToo",
	"TestWorkDoneBeforeATimeoutIsKept",
	"TestARevokedTokenDoesNotEndTheRun",
}

// endToEnd skips an end-to-end test that make check leaves out.
func endToEnd(t *testing.T) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(quick, name) {
		t.Skip("make check runs the quick end-to-end tests only")
	}
}

// The cast of every rig.
const (
	rigRepo   = "acme/widgets"
	rigSecret = "a webhook secret of some length"
	writer    = "ada"     // may write, id 1001
	reader    = "mallory" // may read, id 1002
)

// rig is a world with a fake GitHub and the built binary serving in it.
type rig struct {
	t      *testing.T
	world  *fakegithub.Server
	dir    string           // config, database, data
	config string           // YAML after the fixed part; see backend and policy
	drain  string           // server.drain; empty for none
	more   string           // further keys of server, after a comma
	dsn    string           // of the database, as the configuration has it
	data   string           // the data directory
	dated  func() time.Time // the clock by which the database's times are meant
	clock  *clock           // GitHub's, and that of a server in this process; nil where the test gave GitHub another
	addr   string
	pages  string       // the address of its pages
	cookie *http.Cookie // of an operator, once a page was read
	log    *logBuffer
	node   *server.Server // in this process, after start; nil while none serves
	halt   func() error   // ends node and returns what its Run returned
	server *member        // a process of its own, which a test can kill; of newProcessRig and startProgram
	apart  bool           // start makes a process of its own
	stirs  chan struct{}  // holds one when something happened since the last look of await
	pulled int            // the pull request of startOnRemarks
}

// newRig makes the world: one repository with the given files, a writer and a
// reader, the App installed. The server is started by start.
func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	c := &clock{}
	r := newRigAt(t, files, c.now)
	r.clock = c
	return r
}

// newProcessRig is newRig whose server is a process of its own, which a test can signal and kill.
func newProcessRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	needs.All(t, "a server in a process of its own")
	r := newRig(t, files)
	r.apart = true
	return r
}

// allChecks has every check run made, for tests to look at.
const allChecks = "checks: {severity: always, stagnation: always}\n"

// newRigAt is newRig with a clock for the fake GitHub, and what else its options shall be.
func newRigAt(t *testing.T, files map[string]string, now func() time.Time, change ...func(*fakegithub.Options)) *rig {
	t.Helper()
	endToEnd(t)
	if files == nil {
		files = map[string]string{"README.md": "# widgets\n", "a.txt": "one\n", config.RepoFile: allChecks}
	}
	r := &rig{
		t:     t,
		dir:   t.TempDir(),
		log:   &logBuffer{},
		dsn:   "sqlite:pawl.db",
		data:  "data",
		dated: time.Now,
		stirs: make(chan struct{}, 1),
	}
	o := fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: rigSecret, Now: now}
	for _, f := range change {
		f(&o)
	}
	var err error
	r.world, err = fakegithub.New(o)
	r.must(err)
	t.Cleanup(func() { r.world.Close() })
	r.must(r.world.AddRepo(t.Context(), rigRepo, files))
	r.must(r.world.AddUser(writer, 1001, map[string]string{rigRepo: "write"}))
	r.must(r.world.AddUser(reader, 1002, map[string]string{rigRepo: "read"}))
	r.must(r.world.Install(rigRepo))
	r.must(os.WriteFile(filepath.Join(r.dir, "app.pem"), r.world.PrivateKeyPEM(), 0o600))
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// agent makes a shell script the only backend: kind command, stream plain,
// unless more (YAML fields such as `stream: codex, timeout: 5s`) says otherwise.
// The script runs in the checkout; $CTRL is a folder that it shares with the
// test (sandbox mode none).
func (r *rig) agent(script, more string) {
	r.t.Helper()
	r.must(os.MkdirAll(r.ctrl(), 0o700))
	path := filepath.Join(r.dir, "agent.sh")
	r.must(os.WriteFile(path, []byte("#!/bin/sh\nCTRL='"+r.ctrl()+"'\necho x >> \"$CTRL/calls\"\n"+script), 0o700))
	if more != "" {
		more = ", " + more
	}
	r.config += fmt.Sprintf("backends:\n  - {name: mine, kind: command, argv: [%q]%s}\n", path, more)
}

func (r *rig) ctrl() string { return filepath.Join(r.dir, "ctrl") }

// calls is how often the agent was started.
func (r *rig) calls() int {
	b, _ := os.ReadFile(filepath.Join(r.ctrl(), "calls"))
	return bytes.Count(b, []byte("\n"))
}

// file writes the server's configuration and returns its path. Sandbox mode and
// backends come from r.config.
func (r *rig) file() string {
	r.t.Helper()
	text := fmt.Sprintf(`server: {address: "127.0.0.1:0", pages: "127.0.0.1:0", drain: %s%s}
github:
  web_url: %s
  v3_api_url: %s
  app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem}
database: %s
data_dir: %s
log: {level: debug}
%s`, cmp.Or(r.drain, "0s"), r.more, r.world.WebURL(), strings.TrimSuffix(r.world.APIURL(), "/"), rigSecret, r.dsn, r.data, r.config)
	if !strings.Contains(text, "\nsandbox:") {
		text += "sandbox: {mode: none}\n"
	}
	path := filepath.Join(r.dir, "pawl.yml")
	r.must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// start runs the server, in this process unless the rig is of newProcessRig, and returns when it answers webhooks.
func (r *rig) start() {
	r.t.Helper()
	if r.apart {
		r.startProgram()
		return
	}
	file := &server.File{Name: r.file()}
	cfg, err := file.Read()
	r.must(err)
	if cfg.Sandbox.Mode != string(sandbox.None) {
		needs.All(r.t, "bubblewrap")
	}
	now := time.Now
	if r.clock != nil {
		now = r.clock.now
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.t.Context()))
	node := server.New(cfg, server.Deps{
		Now:       now,
		Log:       zerolog.New(r.log).With().Timestamp().Logger(),
		Program:   pawlBinary,
		Check:     doctor.AtStart(web.Build{}),
		File:      file,
		Committed: r.stir,
	})
	served, err := node.Start(ctx)
	if err != nil {
		cancel()
		r.t.Fatalf("the server did not start: %v\n%s", err, r.log)
	}
	r.node, r.dated = node, now
	r.halt = sync.OnceValue(func() error {
		r.node = nil
		cancel()
		return <-served
	})
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("log of the server at %s:\n%s", r.addr, r.log)
		}
		if err := r.halt(); err != nil {
			r.t.Error(err)
		}
	})
	r.addr, r.pages = node.Address(), node.PagesAddress()
	r.world.SetWebhookURL(r.url("/api/github/hook"))
}

// stir has await look again.
func (r *rig) stir() {
	select {
	case r.stirs <- struct{}{}:
	default: // await will look anyway
	}
}

// startProgram runs `pawl serve` as a process, which a test can kill.
func (r *rig) startProgram(env ...string) {
	r.t.Helper()
	cmd := exec.Command(pawlBinary, "serve", "--config", r.file())
	cmd.Env = append(os.Environ(), env...)
	r.serveBy(cmd)
}

// startWith does so with a configuration of the test's own.
func (r *rig) startWith(file string) {
	r.t.Helper()
	r.serveBy(exec.Command(pawlBinary, "serve", "--config", file))
}

// serveBy starts a server by a command and sends it the webhooks.
func (r *rig) serveBy(cmd *exec.Cmd) {
	r.t.Helper()
	r.server = r.launch(cmd, r.log)
	r.addr, r.pages = r.server.addr, r.server.pages
	r.world.SetWebhookURL(r.url("/api/github/hook"))
}

// stop ends the server and returns its exit code. A server in this process cannot be killed; its exit code is 0 if Run
// returned nil.
func (r *rig) stop(sig syscall.Signal) int {
	r.t.Helper()
	if r.node == nil {
		r.must(r.server.cmd.Process.Signal(sig))
		return r.ended(r.server)
	}
	if sig != syscall.SIGTERM {
		r.t.Fatalf("%s does not end a server in this process; make the rig by newProcessRig", sig)
	}
	if err := r.halt(); err != nil {
		r.t.Error(err)
		return 1
	}
	return 0
}

// member is one server process.
type member struct {
	cmd    *exec.Cmd
	addr   string
	pages  string
	log    *logBuffer
	exited chan struct{} // closed when it has ended
}

// launch starts a server by a command and returns when it answers webhooks.
func (r *rig) launch(cmd *exec.Cmd, log *logBuffer) *member {
	r.t.Helper()
	needs.All(r.t, "a server in a process of its own")
	m := &member{cmd: cmd, log: log, exited: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	r.must(err)
	r.must(cmd.Start())
	ready := make(chan struct{}, 1)
	go func() {
		defer close(m.exited)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadBytes('\n')
			log.Write(line)
			var l struct{ Message, Address, Pages string }
			if json.Unmarshal(line, &l) == nil && l.Message == "pawl serves" {
				m.addr, m.pages = l.Address, l.Pages
				ready <- struct{}{}
			}
			if err != nil {
				break
			}
		}
		_ = cmd.Wait() // its exit code is in the state
	}()
	r.t.Cleanup(func() {
		if r.t.Failed() {
			r.t.Logf("log of the server at %s:\n%s", m.addr, log)
		}
		_ = cmd.Process.Kill() // it may have ended
		<-m.exited
	})
	select {
	case <-ready:
	case <-m.exited:
		r.t.Fatalf("the server ended: %v\n%s", cmd.ProcessState, log)
	case <-time.After(patience):
		r.t.Fatalf("the server did not start\n%s", log)
	}
	return m
}

// ended waits for the end of a server and returns its exit code.
func (r *rig) ended(m *member) int {
	r.t.Helper()
	select {
	case <-m.exited:
	case <-time.After(patience):
		r.t.Fatalf("the server goes on\n%s", m.log)
	}
	return m.cmd.ProcessState.ExitCode()
}

func (r *rig) url(path string) string { return "http://" + r.addr + path }

// get reads a page of the server as an operator.
func (r *rig) get(path string) (int, string) {
	r.t.Helper()
	if r.cookie == nil {
		var link string
		r.write(func(db *store.Store) {
			var err error
			link, err = server.LoginLink(r.t.Context(), db)
			r.must(err)
		})
		resp, err := http.Get(link)
		r.must(err)
		resp.Body.Close()
		r.cookie = resp.Cookies()[0]
	}
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.pages+path, nil)
	r.must(err)
	req.AddCookie(r.cookie)
	resp, err := http.DefaultClient.Do(req)
	r.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	r.must(err)
	return resp.StatusCode, string(b)
}

// await waits until cond holds. It asks again when a server in this process wrote to its database or GitHub was asked
// for something, and otherwise at growing intervals, as nothing tells of an agent's files or another process's writes.
func (r *rig) await(what string, cond func() bool) {
	r.t.Helper()
	for began := time.Now(); ; {
		changed := r.world.Changed()
		if cond() {
			return
		}
		waited := time.Since(began)
		if waited > patience {
			r.t.Fatalf("%s did not happen\n%+v", what, r.status())
		}
		select {
		case <-changed: // GitHub
		case <-r.stirs: // the database of a server in this process
		case <-time.After(min(max(waited/8, 10*time.Millisecond), 250*time.Millisecond)):
		}
	}
}

// thread returns what `pawl status` says of a thread; the zero value when it does
// not know it.
func (r *rig) thread(name string) status.Thread {
	for _, t := range r.status().Threads {
		if t.Thread == name {
			return t
		}
	}
	return status.Thread{}
}

// status is what `pawl status` shows beside the serving process.
func (r *rig) status() status.Report {
	r.t.Helper()
	var cfg config.Server
	var err error
	if r.node != nil {
		cfg = r.node.Config()
	} else {
		cfg, err = config.Load(filepath.Join(r.dir, "pawl.yml"), os.LookupEnv)
		r.must(err)
	}
	var s status.Report
	r.read(func(db *store.Store) {
		s, err = status.Read(r.t.Context(), cfg, db, r.dated())
		r.must(err)
	})
	return s
}

// over waits until a thread's run has ended and returns its status.
func (r *rig) over(thread string) status.Thread {
	r.t.Helper()
	var s status.Thread
	r.await(thread+" to be over", func() bool {
		s = r.thread(thread)
		if s.State == "waiting" && s.Rule == "gather" {
			r.skip(s)
		}
		return s.State != "" && s.State != "running" && s.State != "waiting"
	})
	return s
}

// check returns Pawl's check run of that name on a commit; the zero value when
// there is none.
func (r *rig) check(sha, name string) fakegithub.CheckRun {
	for _, c := range r.world.CheckRuns(rigRepo) {
		if c.SHA == sha && c.Name == name && c.App == "pawl" {
			return c
		}
	}
	return fakegithub.CheckRun{}
}

// solve opens an issue, lets the writer ask for it, and returns its number.
func (r *rig) solve(title, body string) int {
	r.t.Helper()
	n, err := r.world.OpenIssue(rigRepo, writer, title, body)
	r.must(err)
	_, err = r.world.Comment(rigRepo, n, writer, "/pawl solve")
	r.must(err)
	return n
}

func threadName(n int) string { return fmt.Sprintf("%s#%d", rigRepo, n) }

// logBuffer is the server's log, written and read by different goroutines.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func TestAnIssueBecomesADraftPullRequest(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent("cat > \"$CTRL/prompt\"\necho two >> a.txt\necho 'a.txt has a second line now'\n", "")
	r.start()
	n := r.solve("A second line", "Please add a second line to a.txt.")
	s := r.over(threadName(n))
	if s.State != "done" || r.calls() != 1 {
		t.Fatalf("state %s (%s %v) after %d calls, want done after 1", s.State, s.Rule, s.Reasons, r.calls())
	}
	pulls := r.world.Pulls(rigRepo)
	if len(pulls) != 1 || !pulls[0].Pull.Draft || pulls[0].Pull.Head != fmt.Sprintf("pawl/issue-%d", n) {
		t.Fatalf("pull requests: %+v, want one draft from pawl/issue-%d", pulls, n)
	}
	for _, name := range []string{"pawl", "pawl/severity", "pawl/stagnation"} {
		r.await(name, func() bool { return r.check(pulls[0].Pull.HeadSHA, name).Conclusion == "success" })
	}
}
