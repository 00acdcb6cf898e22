//go:build clis

package clis_test

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"
	"golang.org/x/tools/txtar"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/policy"
)

// These tests run no CLI by default. With -changes they replay the scenarios with each CLI and report differences from
// the recordings. With -record they rewrite one CLI's recordings in testdata/agents.
var (
	changes = flag.Bool("changes", false, "replay the recorded scenarios with the CLIs and report differences")
	record  = flag.String("record", "", "record the runs of this CLI again")
	bin     = flag.String("bin", "../../../testdata/clis/node_modules/.bin", "the folder of the CLIs' programs")
)

const recordings = "../../../testdata/agents"

// scenario can be played by every CLI without long waits. ending lists its valid endings.
type scenario struct {
	name   string
	edits  bool
	again  bool // a second step continues the session
	unlike func(*agent.Request, *agent.Command)
	ending []policy.Ending
}

func scenarios() []scenario {
	return []scenario{
		{name: "edit-success", edits: true, ending: []policy.Ending{policy.Completed}},
		{name: "shell-edit", edits: true, ending: []policy.Ending{policy.Completed}},
		{name: "edit-loop", edits: true, ending: []policy.Ending{policy.Completed}},
		{name: "flipflop-loop", edits: true, ending: []policy.Ending{policy.Completed, policy.SelfLoop}},
		{name: "resume", edits: true, again: true, ending: []policy.Ending{policy.Completed}},
		{name: "tool-fail", ending: []policy.Ending{policy.Completed}},
		{name: "no-edit", ending: []policy.Ending{policy.Completed}},
		{name: "thinking", ending: []policy.Ending{policy.Completed}},
		{name: "auth-401", ending: []policy.Ending{policy.Auth}},
		{name: "auth-403", ending: []policy.Ending{policy.Auth}},
		{name: "model-404", ending: []policy.Ending{policy.Misconfigured}},
		{name: "context-400", ending: []policy.Ending{policy.ContextOverflow}},
		{name: "insufficient-quota", ending: []policy.Ending{policy.UsageLimit}},
		{name: "stream-quota", ending: []policy.Ending{policy.UsageLimit, policy.RateLimited, policy.Disconnected}},
		// Some CLIs print half an answer as if it were whole. In production the gateway detects that.
		{name: "max-tokens", ending: []policy.Ending{policy.CutOff, policy.Completed}},
		{name: "empty", ending: []policy.Ending{policy.NoAnswer}},
		{name: "refusal", ending: []policy.Ending{policy.NoAnswer}},
		// OpenCode repeats the request endlessly. In production the gateway reports a lost connection.
		{name: "trunc-eof", ending: []policy.Ending{policy.Disconnected, policy.Crashed}},
		// Without standard error the cause is unknown.
		{name: "bad-flag", ending: []policy.Ending{policy.Misconfigured, policy.Crashed}, unlike: func(_ *agent.Request, c *agent.Command) { c.Argv = append(c.Argv, "--no-such-flag") }},
		{name: "bad-resume", ending: []policy.Ending{policy.Misconfigured, policy.Crashed}, unlike: func(r *agent.Request, _ *agent.Command) { r.Session = "00000000-0000-4000-8000-000000000000" }},
	}
}

// longestPlay bounds a scenario. After it a CLI is killed, as it is in an attempt.
const longestPlay = 10 * time.Minute

// played is the output and exit code of one step.
type played struct {
	stdout, stderr string
	exit           int
}

// play runs a scenario with a CLI against a new fake provider, without a sandbox.
func play(t *testing.T, kind string, s scenario) (steps []played) {
	t.Helper()
	p, err := fakeprovider.Start(fakeprovider.Options{Key: "sk-mock"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	a, r := everyCLI[kind]()
	programs, err := filepath.Abs(*bin)
	if err != nil {
		t.Fatal(err)
	}
	root, home, tree := "/agent/"+kind+"-"+s.name, t.TempDir(), t.TempDir()
	if out, err := exec.Command("git", "init", "-q", tree).CombinedOutput(); err != nil {
		t.Fatalf("git init: %v\n%s", err, out)
	}
	r.Prompt, r.Dir, r.Home, r.Effort, r.TestTool = "Create hello.txt with a short greeting.", tree, home, "", nil
	r.Env = map[string]string{"PATH": programs + ":" + os.Getenv("PATH"), "TMPDIR": home}
	r.Endpoint.URL, r.Endpoint.Token = p.URL(s.name), "sk-mock"
	p.Set("cwd", tree)
	hide := strings.NewReplacer(home, root+"/home", tree, root+"/repo", p.URL(""), "http://127.0.0.1:9/s/", programs, "/agent/bin")
	for step := 0; step == 0 || step == 1 && s.again; step++ {
		request := r
		if s.unlike != nil {
			s.unlike(&request, &agent.Command{})
		}
		c, err := a.Command(request)
		if errors.Is(err, agent.ErrSession) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		if s.unlike != nil {
			s.unlike(&request, &c)
		}
		ran := start(t, c, tree, home)
		report := inspect(t, a, ran, tree)
		ran.stdout, ran.stderr = hide.Replace(ran.stdout), hide.Replace(ran.stderr)
		steps, r.Session = append(steps, ran), report.SessionID
	}
	return steps
}

func start(t *testing.T, c agent.Command, tree, home string) played {
	t.Helper()
	for name, text := range c.Files {
		path := filepath.Join(home, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), longestPlay)
	defer cancel()
	program := c.Argv[0]
	for _, dir := range filepath.SplitList(strings.TrimPrefix(c.Env[slices.IndexFunc(c.Env, func(e string) bool { return strings.HasPrefix(e, "PATH=") })], "PATH=")) {
		if _, err := os.Stat(filepath.Join(dir, program)); err == nil {
			program = filepath.Join(dir, program)
			break
		}
	}
	cmd := exec.CommandContext(ctx, program, c.Argv[1:]...)
	var out, errs strings.Builder
	cmd.Dir, cmd.Env, cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = tree, c.Env, strings.NewReader(c.Stdin), &out, &errs, 5*time.Second
	if err := cmd.Run(); cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return played{out.String(), errs.String(), cmd.ProcessState.ExitCode()}
}

func inspect(t *testing.T, a agent.Adapter, p played, dir string) agent.Report {
	t.Helper()
	report, err := agent.Inspect(strings.NewReader(p.stdout), a, agent.InspectOptions{Dir: dir, Exit: &agent.Exit{Code: p.exit}, Stderr: p.stderr, Now: time.Now()})
	if err != nil {
		t.Fatal(err)
	}
	return report
}

// archive formats a run as a file of testdata/agents.
func (s scenario) archive(steps []played) []byte {
	want, _ := json.Marshal(map[string]any{"ending": s.ending, "edits_in_git": s.edits})
	files := []txtar.File{{Name: "expected.json", Data: append(want, '\n')}}
	for i, step := range steps {
		n := []string{"", "2"}[i]
		for name, text := range map[string]string{"exit" + n + ".txt": fmt.Sprint(step.exit), "stdout" + n + ".jsonl": step.stdout, "stderr" + n + ".txt": step.stderr} {
			if text != "" {
				files = append(files, txtar.File{Name: name, Data: []byte(strings.TrimSuffix(text, "\n") + "\n")})
			}
		}
	}
	slices.SortFunc(files, func(a, b txtar.File) int { return strings.Compare(a.Name, b.Name) })
	return txtar.Format(&txtar.Archive{Files: files})
}

// kinds lists the kinds of events in an output: each line's type and subtypes.
func kinds(stdout string) (found []string) {
	for raw := range strings.Lines(stdout) {
		line := agent.Line([]byte(raw))
		parts := []string{line.Get("type").Str}
		for _, name := range []string{"subtype", "item.type", "part.type", "event.type"} {
			if v := line.Get(name).Str; v != "" {
				parts = append(parts, v)
			}
		}
		line.Get("message.content.#.type").ForEach(func(_, v gjson.Result) bool {
			found = append(found, parts[0]+"/"+v.Str)
			return true
		})
		if parts[0] != "" {
			found = append(found, strings.Join(parts, "/"))
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

// TestCLIsMatchTheirRecordedScenarios runs the scenarios with the CLIs of -bin if -changes or -record asks for it.
func TestCLIsMatchTheirRecordedScenarios(t *testing.T) {
	if !*changes && *record == "" {
		t.Skip("run by make clis-latest; after a CLI changed, use -changes or -record KIND")
	}
	for _, kind := range config.CLIs() {
		if *record != "" && *record != kind {
			continue
		}
		dir := filepath.Join(recordings, kind)
		var known []string
		for _, name := range namesOf(t, dir) {
			known = append(known, kinds(agenttest.Text(t, dir+"/"+name, "stdout.jsonl")+agenttest.Text(t, dir+"/"+name, "stdout2.jsonl"))...)
		}
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			a := cli(kind)
			out, err := exec.Command(filepath.Join(*bin, a.Name), "--version").CombinedOutput()
			_, judged := a.Version.Judge(string(out))
			t.Logf("%s: %s (%v)", kind, judged, err)
			for _, s := range scenarios() {
				t.Run(s.name, func(t *testing.T) {
					steps := play(t, kind, s)
					if *record != "" {
						if err := errors.Join(os.MkdirAll(dir, 0o755), os.WriteFile(filepath.Join(dir, s.name+".txtar"), s.archive(steps), 0o644)); err != nil {
							t.Fatal(err)
						}
					}
					for _, step := range steps {
						if got := inspect(t, a, step, "/agent/"+kind+"-"+s.name+"/repo"); !slices.Contains(s.ending, got.Ending) || s.edits != (got.Edits.Operations > 0) && kind != config.Codex && s.name != "shell-edit" {
							t.Errorf("ending %s after %d edits, want %s; %q", got.Ending, got.Edits.Operations, s.ending, got.Reasons)
						}
						for _, event := range kinds(step.stdout) {
							if *record == "" && !slices.Contains(known, event) {
								t.Errorf("an event of an unrecorded kind: %s", event)
							}
						}
					}
				})
			}
		})
	}
}

func namesOf(t *testing.T, dir string) []string {
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return agenttest.Names(t, dir)
}
