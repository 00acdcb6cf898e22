package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/local"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// realCLI is one of the agents, and how it reaches the fake provider.
type realCLI struct{ kind, protocol, model, version string }

// knownModels are the models of the CLIs that accept only known model names.
var knownModels = map[string]string{
	config.Codex:  "gpt-5.5",
	config.Claude: "claude-opus-4-8",
	config.Gemini: "gemini-2.5-pro",
}

// realCLIs returns the agents that .ci/setup installs: all rows of config's table.
func realCLIs() (all []realCLI) {
	for _, kind := range config.CLIs() {
		row := config.CLIOf(kind)
		all = append(all, realCLI{kind, row.Protocols[0], cmp.Or(knownModels[kind], "mock-model"), row.Version})
	}
	return all
}

// modules returns the folder where the CLIs are installed. It skips the test if a CLI is missing.
func modules(t *testing.T) string {
	t.Helper()
	needs.All(t, "the agent CLIs")
	dir, err := filepath.Abs("../../testdata/clis/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range realCLIs() {
		if _, err := os.Stat(filepath.Join(dir, ".bin", c.kind)); err != nil {
			t.Skipf("%s is not installed: .ci/setup installs the agent CLIs from the npm registry", c.kind)
		}
	}
	return dir
}

// cliRig is a repository, a fake provider that plays one scenario, and a configuration with one real CLI. The CLI
// reaches the provider through the gateway.
type cliRig struct {
	*folder
	cli      realCLI
	provider *fakeprovider.Server
	scenario string
	mode     sandbox.Mode
	modules  string
	// Additional YAML: backend is for the backend, fields is for the provider, and more is for the top level.
	backend, fields, more string
	env                   []string
}

func newCLIRig(t *testing.T, cli realCLI, scenario string) *cliRig {
	t.Helper()
	s := &cliRig{folder: newLocal(t, ""), cli: cli, scenario: scenario, modules: modules(t), mode: testrig.Kept(t)}
	var err error
	if s.provider, err = fakeprovider.Start(fakeprovider.Options{Key: testrig.ProviderKey}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.provider.Close() })
	return s
}

// section returns the configuration of the CLI, its provider and the sandbox. Its startup timeout is long: a CLI starts
// in 2 to 4 s on an idle machine, but in over a minute on a busy one. OpenCode also prints nothing until it gives up on
// a provider.
func (s *cliRig) section() string {
	base := s.provider.URL(s.scenario)
	if s.cli.protocol == "openai" {
		base += "/v1"
	}
	backend := comma(s.backend)
	if !strings.HasPrefix(s.backend, "timeout:") { // startup_timeout may not exceed timeout
		backend += ", startup_timeout: 10m"
	}
	return fmt.Sprintf(`sandbox: {mode: %s, read_only: [%q]}
providers:
  - {name: fake, protocol: %s, base_url: %q, key: %q, no_answer_bytes: 4000%s}
backends:
  - {name: %s, kind: %[7]s, model: %s, provider: fake%s}
%s`, s.mode, s.modules, s.cli.protocol, base, testrig.ProviderKey, comma(s.fields), s.cli.kind, s.cli.model, backend, s.more)
}

func comma(fields string) string {
	if fields == "" {
		return ""
	}
	return ", " + fields
}

// path returns the search path for a process that starts CLIs. Their Node.js comes first.
func (s *cliRig) path() string {
	return "PATH=" + filepath.Join(s.modules, ".bin") + ":" + os.Getenv("PATH")
}

// run gives the CLI a task with pawl run and returns the result.
func (s *cliRig) run(args ...string) local.Result {
	s.t.Helper()
	_, r := s.runs(args...)
	return r
}

// runs is like run, and also returns the exit code.
func (s *cliRig) runs(args ...string) (int, local.Result) {
	s.t.Helper()
	code, out, stderr := s.pawlRun(append(args, "--json")...)
	var r local.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Attempts) == 0 {
		s.t.Fatalf("pawl run: exit code %d, %v\n%s%s", code, err, out, stderr)
	}
	s.t.Cleanup(func() {
		if s.t.Failed() {
			s.t.Logf("pawl run, exit code %d: %s%s", code, out, stderr)
			s.t.Logf("transcript of the last attempt: %.6000s", s.transcript(r.Attempts[len(r.Attempts)-1].Receipt))
			for _, q := range s.provider.Requests() {
				s.t.Logf("%s %s, effort %q, %d bytes", q.Time.Format(time.TimeOnly), q.Path, q.Effort, len(q.Body))
			}
		}
	})
	return code, r
}

func (s *cliRig) pawlRun(args ...string) (code int, stdout, stderr string) {
	s.t.Helper()
	s.write("pawl.yml", fmt.Sprintf("github: {app: {integration_id: 1, webhook_secret: %q, private_key_file: app.pem}}\nlog: {level: error}\n%s", testrig.Secret, s.section()))
	args = append([]string{"run", "--config", s.config, "--backend", s.cli.kind, "--repo", s.repo, "--sandbox", string(s.mode), "--task", "Create hello.txt with a short greeting."}, args...)
	return pawl(s.t, s.dir, append([]string{"HOME=" + s.home(), "XDG_CACHE_HOME=", s.path()}, s.env...), args...)
}

// home returns the HOME of the pawl process; transcripts are kept below it.
func (s *cliRig) home() string { return filepath.Join(s.dir, "home") }

func (s *cliRig) transcript(r policy.Receipt) string {
	b, err := os.ReadFile(r.Transcript)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// requests returns the agents' requests to the provider. Only requests with tools come from an agent.
func (s *cliRig) requests() []fakeprovider.Request {
	return slices.DeleteFunc(s.provider.Requests(), func(r fakeprovider.Request) bool { return r.Protocol == "" || len(r.Tools) == 0 })
}

// noProcessLeft fails if a process still has the test's folder in its arguments, environment or current folder.
func (s *cliRig) noProcessLeft() {
	s.t.Helper()
	dirs, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range dirs {
		args, _ := os.ReadFile(d + "/cmdline")
		env, _ := os.ReadFile(d + "/environ")
		at, _ := os.Readlink(d + "/cwd")
		if strings.Contains(string(args)+string(env)+at, s.dir) {
			s.t.Errorf("process %s is left: %q in %s", filepath.Base(d), args, at)
		}
	}
}

// attempts returns the attempts that pawl run logged, and the account's breaker.
func (s *cliRig) attempts(r local.Result) (all []thread.Attempt, breaker policy.Breaker) {
	s.t.Helper()
	db, err := store.Open(s.t.Context(), "sqlite:"+filepath.Join(r.Transcripts, "pawl.db"), store.Options{Access: store.Reading})
	if err != nil {
		s.t.Fatal(err)
	}
	defer db.Close()
	events, err := db.Events(s.t.Context(), thread.ID{Owner: "local", Name: "widgets", Number: 1}, 0)
	if err != nil {
		s.t.Fatal(err)
	}
	state, err := thread.Fold(events)
	if err != nil {
		s.t.Fatal(err)
	}
	breakers, err := db.Breakers(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return state.Attempts, breakers[s.cli.kind]
}

// greets checks that the scenario's greeting is on the branch of a run.
func (s *cliRig) greets(r local.Result) {
	s.t.Helper()
	if got := s.git("show", r.Branch+":hello.txt"); !strings.HasPrefix(got, "hello from the mock model\n") {
		s.t.Errorf("hello.txt on %s is %q", r.Branch, got)
	}
}

// has checks a file's content on a run's branch.
func (s *cliRig) has(r local.Result, file, want string) {
	s.t.Helper()
	if got := s.git("show", r.Branch+":"+file); got != want {
		s.t.Errorf("%s on %s is %q, want %q", file, r.Branch, got, want)
	}
}

// rungOf returns a rung from a receipt; the zero value if the rung did not fire.
func rungOf(r policy.Receipt, n int) policy.Rung {
	for _, rung := range r.Rungs {
		if rung.Rung == n {
			return rung
		}
	}
	return policy.Rung{}
}
