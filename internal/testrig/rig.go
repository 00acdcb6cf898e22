// Package testrig runs a whole server for tests: a fake GitHub on loopback, scripted agents, and Pawl. Pawl runs in the
// test's process under a clock that the test moves, or in its own process, which the test can kill. Only tests import
// it.
package testrig

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
	"runtime/debug"
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
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/internal/web"
)

// Main builds the program under test and runs a package's tests. If a sandbox starts the test program instead of Pawl, Main
// does the sandbox's work.
func Main(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sandbox.InsideCommand {
		fmt.Fprintln(os.Stderr, sandbox.Inside(os.Args[2:]))
		os.Exit(126)
	}
	flag.Parse()
	dir, err := os.MkdirTemp("", "pawl-test-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	Program = filepath.Join(dir, "pawl")
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", Program, "github.com/pawlbot/pawl/cmd/pawl")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pawl: %v\n%s", err, out)
		os.Exit(1)
	}
	debug.SetGCPercent(400) // many servers share this process, and garbage collection took a quarter of its time
	os.Unsetenv("GOTMPDIR") // tests' folders belong in TMPDIR, which .ci/testing puts in memory
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

var Program string

// Patience limits every wait of a test. It is long so that no test fails on a busy machine.
const Patience = 10 * time.Minute

// quick lists the end-to-end tests of make check, which cover each main path once.
var quick = []string{
	"TestIssueBecomesDraftPullRequest",
	"TestPromptUsesThePayloadsText",
	"TestButtonsWorkForWritersOnly",
	"TestImmediateUsageLimitStopsAfter3",
	"TestStopEndsVerification",
	"TestWorkDoneBeforeATimeoutIsKept",
	"TestRevokedTokenDoesNotEndTheRun",
}

// EndToEnd skips an end-to-end test that make check leaves out.
func EndToEnd(t *testing.T) {
	t.Helper()
	name, _, _ := strings.Cut(t.Name(), "/")
	if testing.Short() && !slices.Contains(quick, name) {
		t.Skip("make check runs the quick end-to-end tests only")
	}
}

const (
	Repo   = "acme/widgets"
	Secret = "a webhook secret of some length"
	Writer = "ada"     // may write, id 1001
	Reader = "mallory" // may read, id 1002
)

// Rig is a fake GitHub and a Pawl server connected to it.
type Rig struct {
	T      *testing.T
	World  *fakegithub.Server
	Dir    string            // configuration, database and data
	Config string            // YAML that File appends to its own; see Agent
	Drain  string            // server.drain; empty means 0s
	More   string            // further keys of server, beginning with a comma
	App    string            // further keys of github.app, beginning with a comma
	Edit   *strings.Replacer // changes the configuration that File writes; nil changes nothing
	DSN    string            // the database's address, as in the configuration
	Data   string            // the data directory, as in the configuration
	Dated  func() time.Time  // the clock that Status uses
	Clock  *Clock            // the clock of GitHub and of a server in this process; nil if NewAt got another clock
	Addr   string            // where the server answers webhooks, as HOST:PORT
	Pages  string            // where the server answers pages, as HOST:PORT
	Cookie *http.Cookie      // an operator's session; nil until the first Get
	Log    *LogBuffer        // of all servers that this rig started
	Node   *server.Server    // the server in this process; nil while none runs
	Server *Member           // the server in its own process; see NewProcess and StartProgram
	Apart  bool              // Start runs a separate process

	halt  func() error  // stops Node and returns its error
	stirs chan struct{} // holds a token after a server in this process wrote to its database
}

// New creates a GitHub with one repository of the given files, a writer, a reader, and the App installed. If files is
// nil, the repository has a README, a.txt with one line, and a configuration with AllChecks. Start starts the server.
func New(t *testing.T, files map[string]string) *Rig {
	t.Helper()
	c := &Clock{}
	r := NewAt(t, files, c.Now)
	r.Clock = c
	return r
}

// NewProcess is New with the server in its own process, which a test can signal and kill.
func NewProcess(t *testing.T, files map[string]string) *Rig {
	t.Helper()
	needs.All(t, "a server in a process of its own")
	r := New(t, files)
	r.Apart = true
	return r
}

// AllChecks makes Pawl create every check run.
const AllChecks = "checks: {severity: always, stagnation: always}\n"

// NewAt is New with another clock for the fake GitHub and with changed options.
func NewAt(t *testing.T, files map[string]string, now func() time.Time, change ...func(*fakegithub.Options)) *Rig {
	t.Helper()
	EndToEnd(t)
	if files == nil {
		files = map[string]string{"README.md": "# widgets\n", "a.txt": "one\n", config.RepoFile: AllChecks}
	}
	r := &Rig{
		T:     t,
		Dir:   t.TempDir(),
		Log:   &LogBuffer{},
		DSN:   defaultDSN,
		Data:  "data",
		Dated: time.Now,
		stirs: make(chan struct{}, 1),
	}
	o := fakegithub.Options{AppID: 1, Slug: "pawl", WebhookSecret: Secret, Now: now}
	for _, f := range change {
		f(&o)
	}
	var err error
	r.World, err = fakegithub.New(o)
	r.Must(err)
	t.Cleanup(func() { r.World.Close() })
	r.Must(r.World.AddRepo(t.Context(), Repo, files))
	r.Must(r.World.AddUser(Writer, 1001, map[string]string{Repo: "write"}))
	r.Must(r.World.AddUser(Reader, 1002, map[string]string{Repo: "read"}))
	r.Must(r.World.Install(Repo))
	r.Must(os.WriteFile(filepath.Join(r.Dir, "app.pem"), r.World.PrivateKeyPEM(), 0o600))
	return r
}

func (r *Rig) Must(err error) {
	r.T.Helper()
	if err != nil {
		r.T.Fatal(err)
	}
}

// Agent makes a shell script the only backend. more holds further YAML fields, such as `stream: codex, timeout: 5s`;
// the default stream is plain. The script runs in the checkout and shares the folder $CTRL with the test.
func (r *Rig) Agent(script, more string) {
	r.T.Helper()
	r.Must(os.MkdirAll(r.Ctrl(), 0o700))
	path := filepath.Join(r.Dir, "agent.sh")
	r.Must(os.WriteFile(path, []byte("#!/bin/sh\nCTRL='"+r.Ctrl()+"'\necho x >> \"$CTRL/calls\"\n"+script), 0o700))
	if more != "" {
		more = ", " + more
	}
	r.Config += fmt.Sprintf("backends:\n  - {name: mine, kind: command, argv: [%q]%s}\n", path, more)
}

func (r *Rig) Ctrl() string { return filepath.Join(r.Dir, "ctrl") }

func (r *Rig) Calls() int {
	b, _ := os.ReadFile(filepath.Join(r.Ctrl(), "calls"))
	return bytes.Count(b, []byte("\n"))
}

// File writes the server's configuration, which ends with Config, and returns its path. The sandbox mode is none unless
// Config has a sandbox.
func (r *Rig) File() string {
	r.T.Helper()
	text := fmt.Sprintf(`server: {address: "127.0.0.1:0", pages: "127.0.0.1:0", drain: %s%s}
github:
  web_url: %s
  v3_api_url: %s
  app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem%s}
database: %s
data_dir: %s
log: {level: debug}
%s`, cmp.Or(r.Drain, "0s"), r.More, r.World.WebURL(), strings.TrimSuffix(r.World.APIURL(), "/"), Secret, r.App, r.DSN, r.Data, r.Config)
	if !strings.Contains(text, "\nsandbox:") {
		text += "sandbox: {mode: none}\n"
	}
	if r.Edit != nil {
		text = r.Edit.Replace(text)
	}
	path := filepath.Join(r.Dir, "pawl.yml")
	r.Must(os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Start runs the server and returns when it answers webhooks. The server runs in this process, unless NewProcess made the
// rig.
func (r *Rig) Start() {
	r.T.Helper()
	if r.Apart {
		r.StartProgram()
		return
	}
	r.copyDatabase()
	file := &server.File{Name: r.File()}
	cfg, err := file.Read()
	r.Must(err)
	if cfg.Sandbox.Mode != string(sandbox.None) {
		needs.All(r.T, "bubblewrap")
	}
	now, sleep := time.Now, wait.For
	if r.Clock != nil {
		now, sleep = r.Clock.Now, r.Clock.Sleep
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(r.T.Context()))
	node := server.New(cfg, server.Deps{
		Now:       now,
		Sleep:     sleep,
		Log:       zerolog.New(r.Log).With().Timestamp().Logger(),
		Program:   Program,
		Check:     doctor.AtStart(web.Build{}),
		File:      file,
		Committed: r.stir,
	})
	served, err := node.Start(ctx)
	if err != nil {
		cancel()
		r.T.Fatalf("the server did not start: %v; log: %s", err, r.Log.keep())
	}
	r.Node, r.Dated = node, now
	r.halt = sync.OnceValue(func() error {
		r.Node = nil
		cancel()
		return <-served
	})
	r.T.Cleanup(func() {
		if r.T.Failed() {
			r.T.Logf("log of the server at %s: %s", r.Addr, r.Log.keep())
		}
		if err := r.halt(); err != nil {
			r.T.Error(err)
		}
	})
	r.Addr, r.Pages = node.Address(), node.PagesAddress()
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
}

func (r *Rig) stir() {
	select {
	case r.stirs <- struct{}{}:
	default: // the channel already holds a token
	}
}

// StartProgram runs `pawl serve` as a process, with further environment variables.
func (r *Rig) StartProgram(env ...string) {
	r.T.Helper()
	cmd := exec.Command(Program, "serve", "--config", r.File())
	cmd.Env = append(os.Environ(), env...)
	r.copyDatabase()
	r.ServeBy(cmd)
}

// StartWith runs `pawl serve` with another configuration file.
func (r *Rig) StartWith(file string) {
	r.T.Helper()
	r.ServeBy(exec.Command(Program, "serve", "--config", file))
}

// ServeBy starts a server with a command and directs the webhooks to it.
func (r *Rig) ServeBy(cmd *exec.Cmd) {
	r.T.Helper()
	r.Server = r.Launch(cmd, r.Log)
	r.Addr, r.Pages = r.Server.Addr, r.Server.Pages
	r.World.SetWebhookURL(r.URL("/api/github/hook"))
}

// Stop ends the server and returns its exit code. A server in this process accepts only SIGTERM. Its code is 0 if it
// stopped without an error.
func (r *Rig) Stop(sig syscall.Signal) int {
	r.T.Helper()
	if r.Node == nil {
		r.Must(r.Server.Cmd.Process.Signal(sig))
		return r.Ended(r.Server)
	}
	if sig != syscall.SIGTERM {
		r.T.Fatalf("%s does not end a server in this process; make the rig by NewProcess", sig)
	}
	if err := r.halt(); err != nil {
		r.T.Error(err)
		return 1
	}
	return 0
}

// Member is one server process.
type Member struct {
	Cmd    *exec.Cmd
	Addr   string
	Pages  string
	Log    *LogBuffer
	Exited chan struct{} // closed when the process has ended
}

// Launch starts a server with a command and returns when it answers webhooks.
func (r *Rig) Launch(cmd *exec.Cmd, log *LogBuffer) *Member {
	r.T.Helper()
	needs.All(r.T, "a server in a process of its own")
	m := &Member{Cmd: cmd, Log: log, Exited: make(chan struct{})}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	r.Must(err)
	r.Must(cmd.Start())
	ready := make(chan struct{}, 1)
	go func() {
		defer close(m.Exited)
		lines := bufio.NewReader(stderr)
		for {
			line, err := lines.ReadBytes('\n')
			log.Write(line)
			var l struct{ Message, Address, Pages string }
			if json.Unmarshal(line, &l) == nil && l.Message == "pawl serves" {
				m.Addr, m.Pages = l.Address, l.Pages
				ready <- struct{}{}
			}
			if err != nil {
				break
			}
		}
		_ = cmd.Wait() // ProcessState has the exit code
	}()
	r.T.Cleanup(func() {
		if r.T.Failed() {
			r.T.Logf("log of the server at %s: %s", m.Addr, log.keep())
		}
		_ = cmd.Process.Kill() // it may have ended
		<-m.Exited
	})
	select {
	case <-ready:
	case <-m.Exited:
		r.T.Fatalf("the server ended: %v; log: %s", cmd.ProcessState, log.keep())
	case <-time.After(Patience):
		r.T.Fatalf("the server did not start; log: %s", log.keep())
	}
	return m
}

// Ended waits until a server process exits, and returns its exit code.
func (r *Rig) Ended(m *Member) int {
	r.T.Helper()
	select {
	case <-m.Exited:
	case <-time.After(Patience):
		r.T.Fatalf("the server did not exit; log: %s", m.Log.keep())
	}
	return m.Cmd.ProcessState.ExitCode()
}

func (r *Rig) URL(path string) string { return "http://" + r.Addr + path }

// Get reads a page of the server as an operator.
func (r *Rig) Get(path string) (int, string) {
	r.T.Helper()
	if r.Cookie == nil {
		var link string
		r.Write(func(db *store.Store) {
			var err error
			link, err = server.LoginLink(r.T.Context(), db)
			r.Must(err)
		})
		resp, err := http.PostForm(link, nil) // presses the page's button
		r.Must(err)
		resp.Body.Close()
		r.Cookie = resp.Cookies()[0]
	}
	req, err := http.NewRequestWithContext(r.T.Context(), http.MethodGet, "http://"+r.Pages+path, nil)
	r.Must(err)
	req.AddCookie(r.Cookie)
	resp, err := http.DefaultClient.Do(req)
	r.Must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	r.Must(err)
	return resp.StatusCode, string(b)
}

// Await waits until cond holds. It checks after each database write by a server in this process and each call to
// GitHub. It also polls at growing intervals, since agents' files and other processes send no event.
func (r *Rig) Await(what string, cond func() bool) {
	r.T.Helper()
	for began := time.Now(); ; {
		changed := r.World.Changed()
		if cond() {
			return
		}
		waited := time.Since(began)
		if waited > Patience {
			r.T.Fatalf("%s did not happen within %s\n%s", what, Patience, r.standing())
		}
		select {
		case <-changed: // a server called GitHub
		case <-r.stirs: // a server in this process wrote to its database
		case <-time.After(min(max(waited/8, 10*time.Millisecond), 250*time.Millisecond)):
		}
	}
}

// standing describes each thread, and the queue, in one line each.
func (r *Rig) standing() string {
	var b strings.Builder
	report := r.Status()
	for _, t := range report.Threads {
		fmt.Fprintf(&b, "%s is %s (%s %q) after %d attempts: %s\n", t.Thread, t.State, t.Rule, t.Reasons, t.Attempts, t.Headline)
	}
	stats := r.Stats()
	fmt.Fprintf(&b, "%d threads queued, %d running, %d waiting; deliveries %v; the agent was called %d times\n",
		stats.Queued, stats.Running, stats.Waiting, stats.Deliveries, r.Calls())
	return b.String()
}

// Thread returns a thread's status, or the zero value if the thread is unknown.
func (r *Rig) Thread(name string) status.Thread {
	r.T.Helper()
	if r.Node != nil {
		return r.threadHere(name)
	}
	for _, t := range r.Status().Threads {
		if t.Thread == name {
			return t
		}
	}
	return status.Thread{}
}

// threadHere reads one thread of the server in this process, without the rest of the report.
func (r *Rig) threadHere(name string) status.Thread {
	r.T.Helper()
	rows, err := r.Node.Store().Threads(r.T.Context(), 1000)
	r.Must(err)
	for _, row := range rows {
		if row.Thread.String() == name {
			v, err := r.Node.View(r.T.Context(), row.Thread)
			r.Must(err)
			return status.ThreadOf(v)
		}
	}
	return status.Thread{}
}

func (r *Rig) Status() status.Report {
	r.T.Helper()
	var cfg config.Server
	var err error
	if r.Node != nil {
		cfg = r.Node.Config()
	} else {
		cfg, err = config.Load(filepath.Join(r.Dir, "pawl.yml"), os.LookupEnv)
		r.Must(err)
	}
	var s status.Report
	r.Read(func(db *store.Store) {
		s, err = status.Read(r.T.Context(), cfg, db, r.Dated(), status.AllThreads)
		r.Must(err)
	})
	return s
}

// Over waits until a thread's run has ended and returns its status.
func (r *Rig) Over(thread string) status.Thread {
	r.T.Helper()
	var s status.Thread
	r.Await("the end of "+thread, func() bool {
		s = r.Thread(thread)
		if s.State == "waiting" && s.Rule == "gather" {
			r.skip(s)
		}
		return s.State != "" && s.State != "running" && s.State != "waiting"
	})
	return s
}

// Check returns Pawl's check run of a name on a commit; the zero value if there is none.
func (r *Rig) Check(sha, name string) fakegithub.CheckRun {
	for _, c := range r.World.CheckRuns(Repo) {
		if c.SHA == sha && c.Name == name && c.App == "pawl" {
			return c
		}
	}
	return fakegithub.CheckRun{}
}

// Solve opens an issue, comments /pawl solve as the writer, and returns its number.
func (r *Rig) Solve(title, body string) int {
	r.T.Helper()
	n, err := r.World.OpenIssue(Repo, Writer, title, body)
	r.Must(err)
	_, err = r.World.Comment(Repo, n, Writer, "/pawl solve")
	r.Must(err)
	return n
}

// ThreadName returns Pawl's name for an issue or pull request of Repo.
func ThreadName(n int) string { return fmt.Sprintf("%s#%d", Repo, n) }

// LogBuffer is a server's log. Its methods may be called concurrently.
type LogBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *LogBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *LogBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// keep writes the log to a file that outlives the test, in $PAWL_TEST_LOGS or the temporary directory, and returns its
// path. With -v and in CI, where files are lost, it returns the log, too.
func (l *LogBuffer) keep() string {
	f, err := os.CreateTemp(os.Getenv("PAWL_TEST_LOGS"), "pawl-server-*.log")
	if err != nil {
		return err.Error() + "\n" + l.String()
	}
	defer f.Close()
	if _, err := f.WriteString(l.String()); err != nil {
		return err.Error() + "\n" + l.String()
	}
	if testing.Verbose() || os.Getenv("CI") != "" {
		return f.Name() + "\n" + l.String()
	}
	return f.Name()
}
