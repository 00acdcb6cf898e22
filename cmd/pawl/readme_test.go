package main

import (
	"bufio"
	"context"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/fakeprovider"
	"github.com/pawlbot/pawl/internal/needs"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

const sources = "../../"

// readme plays the commands of a page. A shell reads each line, beside programs that only write down what they were
// asked; Pawl's own commands are then run by the built program, and what is asked of others is compared with what it
// names.
type readme struct {
	t              *testing.T
	page           string
	dir, bin, home string
	world          *fakegithub.Server
	model          *fakeprovider.Server
	started        map[string]bool // the first words of the commands that came
}

// recorded writes a call down for readme.calls.
const recorded = "#!/bin/sh\n{ printf '%s\\001' \"${0##*/}\" \"$@\"; echo; } >>\"$CALLS\"\n"

func newReadme(t *testing.T) *readme {
	t.Helper()
	testrig.EndToEnd(t)
	r := &readme{t: t, page: string(file(t, "README.md")), bin: t.TempDir(), home: t.TempDir(), started: map[string]bool{}}
	var err error
	r.world, err = fakegithub.New(fakegithub.Options{AppID: 4711, WebhookSecret: testrig.Secret})
	r.must(err)
	t.Cleanup(func() { r.world.Close() })
	r.model, err = fakeprovider.Start(fakeprovider.Options{})
	r.must(err)
	t.Cleanup(func() { r.model.Close() })
	for _, name := range []string{"make", "pawl", "docker", "kubectl", "helm", "install", "useradd", "systemctl", "sudo", "curl", "chmod", "go"} {
		r.must(os.WriteFile(filepath.Join(r.bin, name), []byte(recorded), 0o755))
	}
	r.must(os.Mkdir(filepath.Join(r.home, "bin"), 0o755))
	script := "#!/bin/sh\n[ \"$1\" = --version ] && { echo codex-cli 0.169.0; exit; }\ncat >/dev/null\nsed -i s/false/true/ widgets.go\n" +
		`echo '{"type":"thread.started","thread_id":"00000000-0000-7000-8000-000000000001"}'` + "\n" +
		`echo '{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"Fixed."}}'` + "\n" +
		`echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'` + "\n"
	r.must(os.WriteFile(filepath.Join(r.home, "bin/codex"), []byte(script), 0o755))
	return r
}

func (r *readme) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func file(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(sources + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// fresh is a folder as it is after make build.
func (r *readme) fresh() {
	r.dir = r.t.TempDir()
	r.must(os.Mkdir(filepath.Join(r.dir, "bin"), 0o755))
	for _, name := range []string{"bin/pawl", "pawl"} {
		r.must(os.WriteFile(filepath.Join(r.dir, name), []byte(recorded), 0o755))
	}
	for _, name := range []string{"config", "Makefile", "Dockerfile"} {
		path, err := filepath.Abs(sources + name)
		r.must(err)
		r.must(os.Symlink(path, filepath.Join(r.dir, name)))
	}
	trail, err := os.ReadFile(sources + "testdata/trails/usage-limit-loop.log")
	r.must(err)
	session := `{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"a"}` + "\n"
	for name, data := range map[string][]byte{"wrapper.log": trail, "session.jsonl": []byte(session)} {
		r.must(os.WriteFile(filepath.Join(r.dir, name), data, 0o600))
	}
}

func (r *readme) env() []string {
	return append(os.Environ(), "HOME="+r.home, "PATH="+r.bin+":"+filepath.Join(r.home, "bin")+":"+os.Getenv("PATH"),
		"OPENAI_API_KEY=a-key", "OPENAI_BASE_URL="+r.model.URL("edit-success")+"/v1", "CALLS="+filepath.Join(r.bin, "calls"))
}

// calls are those that the shell makes of a line.
func (r *readme) calls(line string) (calls [][]string) {
	r.t.Helper()
	path := filepath.Join(r.bin, "calls")
	r.must(os.WriteFile(path, nil, 0o600))
	cmd := exec.Command("sh", "-ec", line)
	cmd.Dir, cmd.Env = r.dir, r.env()
	if out, err := cmd.CombinedOutput(); err != nil {
		r.t.Fatalf("%s: %v (a program that no case covers is not found)\n%s", line, err, out)
	}
	data, err := os.ReadFile(path)
	r.must(err)
	for one := range strings.Lines(string(data)) {
		calls = append(calls, strings.Split(strings.TrimSuffix(one, "\x01\n"), "\x01"))
	}
	return calls
}

var codeBlock = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

func TestEveryCommandOfReadmeRuns(t *testing.T) {
	t.Parallel()
	needs.Program(t, "bwrap")
	r := newReadme(t)
	for _, block := range codeBlock.FindAllStringSubmatch(r.page, -1) {
		text := strings.ReplaceAll("\n"+block[3], "\n"+block[1], "\n")
		if strings.Contains(text, " setup") || r.dir == "" {
			r.fresh()
		}
		switch block[2] {
		case "sh":
			for line := range strings.Lines(text) {
				if line = strings.TrimSpace(line); line != "" {
					for _, call := range r.calls(line) {
						r.check(line, call)
					}
				}
			}
		case "yaml": // a part of the server's file
			if _, err := config.Parse("pawl.yml", []byte("github: {app: {integration_id: 1, private_key_file: a, webhook_secret: 0123456789abcdef}}\n"+text), func(string) (string, bool) { return "x", true }, true); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		default:
			t.Errorf("nobody tries a block of %q:\n%s", block[2], text)
		}
	}
	for _, word := range []string{"make demo", "make test", "make build", "pawl run", "pawl replay", "pawl inspect", "pawl setup", "pawl doctor", "pawl serve", "pawl login", "docker run", "docker compose", "docker exec", "kubectl apply", "helm install", "go install", "systemctl enable"} {
		if !r.started[word] {
			t.Errorf("the page does not say %s", word)
		}
	}
}

// check tries one call.
func (r *readme) check(line string, call []string) {
	r.t.Helper()
	program, args := call[0], call[1:]
	if len(args) > 0 {
		r.started[program+" "+args[0]] = true
	}
	switch program {
	case "make":
		r.makes(args)
	case "pawl":
		r.pawl(line, args)
	case "docker":
		r.docker(line, args)
	case "kubectl":
		r.kubectl(line, args)
	case "helm":
		r.helm(line, args)
	case "go":
		r.goInstall(line, args)
	case "sudo":
		if args[0] == "-u" {
			args = args[2:]
		}
		r.check(line, args)
	case "install":
		from, to := args[len(args)-2], args[len(args)-1]
		unit := string(file(r.t, "config/deploy/pawl.service"))
		if _, err := os.Stat(filepath.Join(r.dir, from)); err != nil || !strings.Contains(unit, "ExecStart="+to+" ") && to != "/etc/systemd/system/pawl.service" {
			r.t.Errorf("%s: %v, and the unit starts another program", line, err)
		}
	case "useradd", "systemctl":
		unit := string(file(r.t, "config/deploy/pawl.service"))
		if home := "WorkingDirectory=/var/lib/pawl\n"; args[len(args)-1] != "pawl" || !strings.Contains(unit, "User=pawl\n"+home) {
			r.t.Errorf("%s: the unit is for another user", line)
		}
	case "curl":
		asset := args[len(args)-1]
		if !strings.HasPrefix(asset, "https://github.com/pawlbot/pawl/releases/latest/download/") || !strings.Contains(string(file(r.t, ".github/workflows/release.yml")), "dist/"+filepath.Base(asset)+"\n") {
			r.t.Errorf("%s: no release has %s", line, asset)
		}
	case "chmod":
		if !slices.Equal(args, []string{"+x", "pawl"}) {
			r.t.Errorf("%s: not the program", line)
		}
	default:
		r.t.Errorf("%s: nobody tries %s", line, program)
	}
}

// pawl runs the built program with what the page says. Beside that, setup is told where the fake GitHub is, and the
// server takes a free port.
func (r *readme) pawl(line string, args []string) {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testrig.Patience)
	defer cancel()
	switch args[0] {
	case "setup":
		r.setup(ctx, line, args)
		return
	case "serve":
		r.serve(line, args)
		return
	case "run":
		_, err := sandbox.New(ctx, sandbox.Auto)
		if tool, _ := exec.LookPath("go"); err != nil || !strings.HasPrefix(tool, "/usr/") {
			r.knows(line, args) // go test would not run in the sandbox here
			return
		}
		widgets := filepath.Join(r.home, "src/widgets")
		r.must(os.MkdirAll(widgets, 0o755))
		for name, text := range map[string]string{"go.mod": "module widgets\n\ngo 1.21\n", "widgets.go": "package widgets\n\nconst fixed = false\n",
			"widgets_test.go": "package widgets\n\nimport \"testing\"\n\nfunc TestFixed(t *testing.T) {\n\tif !fixed {\n\t\tt.Error(\"it is not fixed\")\n\t}\n}\n"} {
			r.must(os.WriteFile(filepath.Join(widgets, name), []byte(text), 0o600))
		}
		for _, git := range []string{"init -q -b main", "add .", "-c user.name=ada -c user.email=ada@example.com commit -qm Start"} {
			cmd := exec.Command("git", append([]string{"-C", widgets}, strings.Fields(git)...)...)
			r.must(cmd.Run())
		}
	}
	cmd := exec.CommandContext(ctx, testrig.Program, args...)
	cmd.Dir, cmd.Env = r.dir, r.env()
	if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
		r.t.Errorf("%s: %v\n%s", line, err, out)
	}
}

// setup is the command and what a person does in the browser.
func (r *readme) setup(ctx context.Context, line string, args []string) {
	r.t.Helper()
	args = append(slices.Clone(args), "--github", r.world.WebURL())
	if i := slices.Index(args, "/var/lib/pawl/pawl.yml"); i > 0 {
		args[i] = filepath.Join(r.dir, "pawl.yml")
	}
	cmd := exec.CommandContext(ctx, testrig.Program, args...)
	cmd.Dir, cmd.Env = r.dir, r.env()
	out, err := cmd.StdoutPipe()
	r.must(err)
	cmd.Stderr = cmd.Stdout
	r.must(cmd.Start())
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		page := strings.TrimSpace(lines.Text())
		if !strings.HasPrefix(page, "http://127.0.0.1:") {
			continue
		}
		resp, err := http.Get(page)
		r.must(err)
		form, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		r.must(err)
		action, manifest := formAction.FindSubmatch(form), formManifest.FindSubmatch(form)
		resp, err = http.PostForm(html.UnescapeString(string(action[1])), url.Values{"manifest": {html.UnescapeString(string(manifest[1]))}})
		r.must(err)
		resp.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		r.t.Fatalf("%s: %v", line, err)
	}
	made := r.world.Manifests()
	r.world.SetWebhookURL(made[len(made)-1].Hook.URL)
	r.must(r.world.AddRepo(ctx, fmt.Sprintf("acme/r%d", len(made)), map[string]string{"a.txt": "one\n"}))
	r.must(r.world.Install(fmt.Sprintf("acme/r%d", len(made))))
}

// serve leaves the server running for the lines that follow.
func (r *readme) serve(line string, args []string) {
	r.t.Helper()
	cmd := exec.Command(testrig.Program, append(slices.Clone(args), "--listen", "127.0.0.1:0")...)
	cmd.Dir, cmd.Env = r.dir, r.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	r.must(err)
	r.must(cmd.Start())
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it is over
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	var said strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		said.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"pawl serves"`) {
			return
		}
	}
	r.t.Fatalf("%s ended:\n%s", line, &said)
}

// Within its sentences the page names commands, too, and numbers.
func TestWhatReadmeSaysIsSo(t *testing.T) {
	t.Parallel()
	r := newReadme(t)
	r.fresh()
	prose := codeBlock.ReplaceAllString(r.page, "")
	for _, code := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(prose, -1) {
		words := strings.Fields(code[1])
		if len(words) < 2 || words[1] == "…" {
			continue
		}
		switch words[0] {
		case "pawl", "bin/pawl":
			r.knows(code[1], words[1:])
		case "/pawl":
			if !policy.IsCommand(words[1]) {
				t.Errorf("there is no command %s", code[1])
			}
		}
	}
	for _, link := range regexp.MustCompile(`\]\(([^):#]+)(#[^)]*)?\)`).FindAllStringSubmatch(prose, -1) {
		if _, err := os.Stat(sources + link[1]); err != nil {
			t.Errorf("a link leads nowhere: %v", err)
		}
	}
	pages, err := filepath.Glob(sources + "docs/*.md")
	r.must(err)
	for _, page := range append(pages, sources+"README.md", sources+"CONTRIBUTING.md", sources+"config/deploy/README.md") {
		text, err := os.ReadFile(page)
		r.must(err)
		for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllSubmatch(text, -1) {
			if !strings.Contains(string(file(t, "Makefile")), "\n"+string(m[1])+":") {
				t.Errorf("%s: the Makefile has no %s", page, m[1])
			}
		}
	}
	text, l := strings.Join(strings.Fields(prose), " "), config.Default().Policy.Limits
	b, c := l.Budget, l.Caps
	for _, want := range []string{
		fmt.Sprintf("%d restarts since a person typed something new, with a growing wait from the %dth on", l.Restarts.Max, l.Restarts.BackoffAfter+1),
		fmt.Sprintf("%d attempts in a row that no person's words began", l.Unattended.MaxAttempts),
		fmt.Sprintf("%d attempts a thread and day, %d a repository, %d an installation, %d a server and %d an account", l.Restarts.MaxPerThreadPerDay, c.PerRepositoryPerDay, c.PerInstallationPerDay, c.PerServerPerDay, c.PerAccountPerDay),
		fmt.Sprintf("%.0f USD and %d million tokens a repository, twice as much an installation and four times as much a server or account and day", b.USDPerRepositoryPerDay, b.TokensPerRepositoryPerDay/1e6),
		fmt.Sprintf("cooldowns of %.0f minutes to %.0f hours for edit loops", l.Severity.MildCooldown.Minutes(), l.Severity.SevereCooldown.Hours()),
		fmt.Sprintf("after %s usage limits in a row nothing is called before the reset", []string{3: "three"}[l.UsageLimit.MaxConsecutive]),
		fmt.Sprintf("git 2.%d or newer", doctor.LeastGit),
		"a secret of at least 16 characters", "within 5 seconds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not say %q", want)
		}
	}
	if b.USDPerInstallationPerDay != 2*b.USDPerRepositoryPerDay || b.TokensPerInstallationPerDay != 2*b.TokensPerRepositoryPerDay ||
		b.USDPerServerPerDay != 4*b.USDPerRepositoryPerDay || b.USDPerAccountPerDay != b.USDPerServerPerDay || b.TokensPerServerPerDay != 4*b.TokensPerRepositoryPerDay || b.TokensPerAccountPerDay != b.TokensPerServerPerDay {
		t.Errorf("another budget than twice and four times: %+v", b)
	}
}
