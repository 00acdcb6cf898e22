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
	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

const sources = "../../"

// readme runs the commands of a page. A shell executes each line with stub programs, which only record their arguments.
// The built program then runs Pawl's own commands. The calls of other programs are looked up in a table.
type readme struct {
	t              *testing.T
	page           string
	dir, bin, home string
	world          *fakegithub.Server
	model          *fakeprovider.Server
	played         map[string]bool // the patterns of others and the commands of Pawl that the page contains
}

// recorded is a stub program that records its call for readme.calls.
const recorded = "#!/bin/sh\n{ printf '%s\\001' \"${0##*/}\" \"$@\"; echo; } >>\"$CALLS\"\n"

func newReadme(t *testing.T) *readme {
	t.Helper()
	testrig.EndToEnd(t)
	r := &readme{t: t, page: file(t, "README.md") + file(t, "docs/install.md"), bin: t.TempDir(), home: t.TempDir(), played: map[string]bool{}}
	var err error
	r.world, err = fakegithub.New(fakegithub.Options{AppID: 4711, WebhookSecret: testrig.Secret})
	r.must(err)
	t.Cleanup(func() { r.world.Close() })
	r.model, err = fakeprovider.Start(fakeprovider.Options{})
	r.must(err)
	t.Cleanup(func() { r.model.Close() })
	for _, name := range []string{"make", "pawl", "docker", "kubectl", "helm", "install", "useradd", "systemctl", "sudo", "curl", "tar", "chmod", "go"} {
		r.must(os.WriteFile(filepath.Join(r.bin, name), []byte(recorded), 0o755))
	}
	r.must(os.WriteFile(filepath.Join(r.bin, "codex"), []byte("#!/bin/sh\necho codex-cli 0.169.0\n"), 0o755))
	return r
}

func (r *readme) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

func file(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(sources + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// fresh creates a folder like the one that make build leaves.
func (r *readme) fresh() {
	r.dir = r.t.TempDir()
	r.must(os.Mkdir(filepath.Join(r.dir, "bin"), 0o755))
	session := `{"type":"result","subtype":"success","is_error":false,"result":"Done.","session_id":"a"}` + "\n"
	for name, text := range map[string]string{
		"bin/pawl":      recorded,
		"pawl":          recorded,
		"wrapper.log":   file(r.t, "testdata/trails/usage-limit-loop.log"),
		"session.jsonl": session,
	} {
		r.must(os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o755))
	}
}

func (r *readme) env() []string {
	return append(os.Environ(), "HOME="+r.home, "PATH="+r.bin+":"+os.Getenv("PATH"), "OPENAI_API_KEY=a-key",
		"OPENAI_BASE_URL="+r.model.URL("edit-success")+"/v1", "CALLS="+filepath.Join(r.bin, "calls"))
}

// calls returns the program calls of a shell line, without sudo.
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
		one = strings.TrimSuffix(one, "\x01\n")
		one = strings.TrimPrefix(strings.TrimPrefix(one, "sudo\x01"), "-u\x01pawl\x01")
		calls = append(calls, strings.Split(one, "\x01"))
	}
	return calls
}

// others returns patterns for the page's calls of other programs. For the call to work, a file must contain each text
// of its pattern: {file, text}, where $1 is the pattern's first group. The group named pawl holds arguments of Pawl.
func others() map[string][][2]string {
	const compose, unit, release = "config/deploy/compose.yml", "config/deploy/pawl.service", ".github/workflows/release.yml"
	const pods = "config/deploy/kubernetes/pawl.yaml"
	image := `ghcr\.io/pawlbot/pawl:0\.1\.0-(` + strings.Join(config.CLIs(), "|") + `)`
	kept := [2]string{"Dockerfile", "\nVOLUME /data\n"}
	return map[string][][2]string{
		`make (demo|test|build)`:           {{"Makefile", "\n$1:"}, {".ci/run", "\nmake $1\n"}},
		`go install (\S+)/cmd/pawl@latest`: {{"go.mod", "module $1\n"}},
		`curl -fLO https://github\.com/pawlbot/pawl/releases/latest/download/(\S+)`:       {{release, "dist/release/$1\n"}},
		`tar -xzf pawl-linux-amd64\.tar\.gz pawl`:                                         nil,
		`useradd --system --create-home --home-dir (\S+) pawl`:                            {{unit, "User=pawl\nWorkingDirectory=$1\n"}},
		`install bin/pawl (\S+)`:                                                          {{unit, "ExecStart=$1 "}},
		`install -m 644 (config/deploy/pawl.service) /etc/systemd/system/(pawl)\.service`: {{"$1", "[Service]"}},
		`install -m 600 /dev/stdin (/etc/pawl\.env)`:                                      {{unit, "EnvironmentFile=-$1\n"}},
		`systemctl enable --now pawl`:                                                     nil,
		`docker run --rm -it -v pawl:/data ` + image + ` (?P<pawl>.+)`:                    {kept},
		`docker run -d --name pawl -v pawl:/data -e OPENAI_API_KEY --security-opt (\S+) --security-opt (\S+) --security-opt (\S+) ` + image: {
			kept, {compose, "- $1\n"}, {compose, "- $2\n"}, {compose, "- $3\n"}},
		`docker exec pawl pawl (?P<pawl>.+)`:                                       nil,
		`docker compose -f config/deploy/compose\.yml up -d`:                       {{compose, "\n  pawl:\n"}},
		`docker compose -f config/deploy/compose\.yml run --rm pawl (?P<pawl>.+)`:  {{compose, "\n  pawl:\n"}},
		`docker compose -f config/deploy/compose\.yml exec pawl pawl (?P<pawl>.+)`: {{compose, "\n  pawl:\n"}},
		`kubectl apply -f (\S+)`:                                                   {{"$1", "\nkind: "}},
		`kubectl --namespace pawl create secret generic pawl --from-file=(\S+) --from-file=(\S+) --from-literal=(\S+)=a-key`: {
			{pods, "secretName: pawl\n"}, {pods, "{key: $1, path: $1}"}, {pods, "{key: $2, path: $2}"}, {pods, "secretKeyRef: {name: pawl, key: $3}"}},
		`helm install pawl oci://ghcr\.io/pawlbot/(charts)/pawl --namespace pawl --set (agent)=(` + strings.Join(config.CLIs(), "|") + `)`: {
			{release, "OWNER,,}/$1\"\n"}, {"config/deploy/helm/pawl/values.yaml", "\n$2: "}},
	}
}

// other checks a call of another program.
func (r *readme) other(line string, call []string) {
	r.t.Helper()
	words := strings.Join(call, " ")
	for pattern, needed := range others() {
		p := regexp.MustCompile("^" + pattern + "$")
		found := p.FindStringSubmatchIndex(words)
		if found == nil {
			continue
		}
		r.played[pattern] = true
		expand := func(template string) string { return string(p.ExpandString(nil, template, words, found)) }
		for _, n := range needed {
			if name, text := expand(n[0]), expand(n[1]); !strings.Contains("\n"+file(r.t, name), text) {
				r.t.Errorf("%s: %s has no %q", line, name, text)
			}
		}
		if args := strings.Fields(expand("${pawl}")); len(args) > 0 {
			r.knows(line, args)
		}
		return
	}
	r.t.Errorf("%s: no pattern matches %s", line, words)
}

// knows fails the test if Pawl lacks this command or one of these flags.
func (r *readme) knows(line string, args []string) {
	r.t.Helper()
	var help, errs strings.Builder
	if code := run([]string{args[0], "--help"}, &help, &errs); code != exitDone {
		r.t.Errorf("%s: there is no pawl %s", line, args[0])
	}
	for _, arg := range args[1:] {
		name, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(name, "--") && !regexp.MustCompile(regexp.QuoteMeta(name)+`\b`).MatchString(help.String()) {
			r.t.Errorf("%s: pawl %s has no %s", line, args[0], name)
		}
	}
}

var codeBlock = regexp.MustCompile("(?ms)^( *)```([a-z]*)\n(.*?)^ *```$")

func TestReadmeCommandsRun(t *testing.T) {
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
				for _, call := range r.calls(line) {
					if call[0] == "pawl" {
						r.pawl(line, call[1:])
					} else {
						r.other(line, call)
					}
				}
			}
		case "yaml": // a part of the server's configuration
			text = "github: {app: {integration_id: 1, private_key_file: a, webhook_secret: 0123456789abcdef}}\n" + text
			if _, err := config.Parse("pawl.yml", []byte(text), func(string) (string, bool) { return "x", true }, true); err != nil {
				t.Errorf("%v\n%s", err, text)
			}
		default:
			t.Errorf("this test cannot run a block of %q:\n%s", block[2], text)
		}
	}
	for pattern := range others() {
		if !r.played[pattern] {
			t.Errorf("the page has no call %s", pattern)
		}
	}
	for _, command := range []string{"run", "replay", "inspect", "setup", "doctor", "serve", "login"} {
		if !r.played[command] {
			t.Errorf("the page has no call pawl %s", command)
		}
	}
	if bad := regexp.MustCompile(`(?m)^(replace|exclude)\b`).FindString(file(t, "go.mod")); bad != "" {
		t.Errorf("go install refuses a module whose go.mod has %s", bad)
	}
}

// pawl runs the built program with the page's arguments. setup also gets the fake GitHub's URL, and serve a free port.
// pawl run is not executed; only its flags are checked.
func (r *readme) pawl(line string, args []string) {
	r.t.Helper()
	r.played[args[0]] = true
	ctx, cancel := context.WithTimeout(r.t.Context(), testrig.Patience)
	defer cancel()
	switch args[0] {
	case "setup":
		r.setup(ctx, line, args)
	case "serve":
		r.serve(line, args)
	case "run":
		r.knows(line, args)
	default:
		cmd := exec.CommandContext(ctx, testrig.Program, args...)
		cmd.Dir, cmd.Env = r.dir, r.env()
		if out, err := cmd.CombinedOutput(); err != nil || len(out) == 0 {
			r.t.Errorf("%s: %v\n%s", line, err, out)
		}
	}
}

var (
	formAction   = regexp.MustCompile(`action="([^"]*)"`)
	formManifest = regexp.MustCompile(`name="manifest" value="([^"]*)"`)
)

// setup runs pawl setup and plays the user in the browser.
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
	for lines := bufio.NewScanner(out); lines.Scan(); {
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
	repo := fmt.Sprintf("acme/r%d", len(made))
	r.must(r.world.AddRepo(ctx, repo, map[string]string{"a.txt": "one\n"}))
	r.must(r.world.Install(repo))
}

// serve starts the server. It runs until the test ends.
func (r *readme) serve(line string, args []string) {
	r.t.Helper()
	cmd := exec.Command(testrig.Program, append(slices.Clone(args), "--listen", "127.0.0.1:0")...)
	cmd.Dir, cmd.Env = r.dir, r.env()
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StderrPipe()
	r.must(err)
	r.must(cmd.Start())
	r.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_, _ = io.Copy(io.Discard, out)
		_ = cmd.Wait()
	})
	var output strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		output.WriteString(lines.Text() + "\n")
		if strings.Contains(lines.Text(), `"pawl serves"`) {
			return
		}
	}
	r.t.Fatalf("%s ended:\n%s", line, &output)
}

// The page's sentences also contain commands and numbers.
func TestReadmeFactsAreTrue(t *testing.T) {
	t.Parallel()
	r := &readme{t: t}
	prose := codeBlock.ReplaceAllString(file(t, "README.md"), "")
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
	pages, err := filepath.Glob(sources + "docs/*.md")
	r.must(err)
	for _, page := range append(pages, sources+"README.md", sources+"CONTRIBUTING.md", sources+"config/deploy/README.md") {
		text, err := os.ReadFile(page)
		r.must(err)
		for _, m := range regexp.MustCompile("`make ([a-z-]+)").FindAllSubmatch(text, -1) {
			if !strings.Contains(file(t, "Makefile"), "\n"+string(m[1])+":") {
				t.Errorf("%s: the Makefile has no %s", page, m[1])
			}
		}
	}
	screen, _, _ := strings.Cut(file(t, "README.md"), "## How it works")
	if n := len(strings.Fields(screen)); n > 250 {
		t.Errorf("the first screen has %d words, want at most 250", n)
	}
	text, l := strings.Join(strings.Fields(prose), " "), config.Default().Policy.Limits
	b, c := l.Budget, l.Caps
	for _, want := range []string{
		fmt.Sprintf("at most %.0f dollars per repository and day", b.USDPerRepositoryPerDay),
		fmt.Sprintf("| %d, with a growing wait from the %dth on | `policy.restarts` |", l.Restarts.Max, l.Restarts.BackoffAfter+1),
		fmt.Sprintf("| %d | `policy.unattended.max_attempts` |", l.Unattended.MaxAttempts),
		fmt.Sprintf("| %d | `policy.restarts.max_per_thread_per_day` |", l.Restarts.MaxPerThreadPerDay),
		fmt.Sprintf("| %d, %d, %d, %d | `policy.caps` |", c.PerRepositoryPerDay, c.PerInstallationPerDay, c.PerServerPerDay, c.PerAccountPerDay),
		fmt.Sprintf("| %.0f, %.0f, %.0f, %.0f | `policy.budget` |", b.USDPerRepositoryPerDay, b.USDPerInstallationPerDay, b.USDPerServerPerDay, b.USDPerAccountPerDay),
		fmt.Sprintf("| %d, %d, %d, %d million | `policy.budget` |", b.TokensPerRepositoryPerDay/1e6, b.TokensPerInstallationPerDay/1e6, b.TokensPerServerPerDay/1e6, b.TokensPerAccountPerDay/1e6),
		fmt.Sprintf("| %.0f minutes to %.0f hours | `policy.severity` |", l.Severity.MildCooldown.Minutes(), l.Severity.SevereCooldown.Hours()),
		fmt.Sprintf("| %d | `policy.usage_limit.max_consecutive` |", l.UsageLimit.MaxConsecutive),
		fmt.Sprintf("git 2.%d or newer", doctor.LeastGit),
		"a secret of at least 16 characters", "within 5 seconds",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the page does not contain %q", want)
		}
	}
}
