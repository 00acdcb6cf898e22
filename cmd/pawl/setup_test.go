package main

import (
	"bufio"
	"bytes"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// installer is the built binary at `pawl setup`, with a fake GitHub and the
// folder that it writes to.
type installer struct {
	t      *testing.T
	gh     *fakegithub.Server
	dir    string
	page   string // its address; empty when it ended before it had one
	stdout bytes.Buffer
	stderr bytes.Buffer
	cmd    *exec.Cmd
	read   chan struct{} // closed when its output has ended
}

// browser follows no redirect by itself.
func browser() *http.Client {
	return &http.Client{Timeout: testrig.Patience, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func newInstaller(t *testing.T) *installer {
	t.Helper()
	i := &installer{t: t, dir: t.TempDir(), read: make(chan struct{})}
	var err error
	i.gh, err = fakegithub.New(fakegithub.Options{AppID: 4711, WebhookSecret: testrig.Secret})
	i.must(err)
	t.Cleanup(func() { i.gh.Close() })
	return i
}

func (i *installer) must(err error) {
	i.t.Helper()
	if err != nil {
		i.t.Fatal(err)
	}
}

// starts runs pawl setup until it shows its page or ends.
func (i *installer) starts(args ...string) {
	i.t.Helper()
	i.cmd = exec.Command(testrig.Program, append([]string{"setup", "--listen", "127.0.0.1:0", "--github", i.gh.WebURL(), "--url", "https://pawl.example.com/"}, args...)...)
	i.cmd.Dir, i.cmd.Stderr = i.dir, &i.stderr
	i.cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	i.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := i.cmd.StdoutPipe()
	i.must(err)
	i.must(i.cmd.Start())
	page := make(chan string, 1)
	go func() {
		defer close(i.read)
		defer close(page)
		for lines := bufio.NewReader(out); ; {
			line, err := lines.ReadString('\n')
			i.stdout.WriteString(line)
			if text := strings.TrimSpace(line); strings.HasPrefix(text, "http://127.0.0.1:") {
				page <- text
			}
			if err != nil {
				return
			}
		}
	}()
	select {
	case i.page = <-page:
	case <-time.After(testrig.Patience):
		i.t.Fatal("pawl setup shows no page")
	}
	i.t.Cleanup(func() {
		if i.cmd.ProcessState == nil {
			i.cmd.Process.Kill()
			i.ends()
		}
	})
}

// ends waits for the end and returns the exit code.
func (i *installer) ends() int {
	<-i.read
	_ = i.cmd.Wait() // its exit code tells
	return i.cmd.ProcessState.ExitCode()
}

// get reads a page of Pawl.
func (i *installer) get(address string) (status int, body string) {
	i.t.Helper()
	resp, err := browser().Get(address)
	i.must(err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	i.must(err)
	return resp.StatusCode, string(b)
}

var (
	formAction   = regexp.MustCompile(`action="([^"]*)"`)
	formManifest = regexp.MustCompile(`name="manifest" value="([^"]*)"`)
)

// presses sends the form of Pawl's page to GitHub, and returns where GitHub sends
// the browser.
func (i *installer) presses() string {
	i.t.Helper()
	status, page := i.get(i.page)
	action, manifest := formAction.FindStringSubmatch(page), formManifest.FindStringSubmatch(page)
	if status != http.StatusOK || action == nil || manifest == nil {
		i.t.Fatalf("the page: %d\n%s", status, page)
	}
	resp, err := browser().PostForm(html.UnescapeString(action[1]), url.Values{"manifest": {html.UnescapeString(manifest[1])}})
	i.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusFound {
		i.t.Fatalf("GitHub answers %s", resp.Status)
	}
	return resp.Header.Get("Location")
}

func (i *installer) files() map[string]os.FileMode {
	i.t.Helper()
	all, err := os.ReadDir(i.dir)
	i.must(err)
	modes := map[string]os.FileMode{}
	for _, one := range all {
		info, err := one.Info()
		i.must(err)
		modes[one.Name()] = info.Mode()
	}
	return modes
}

func TestSetupMakesTheAppAndWritesWhatTheServerNeeds(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, org, callback string
		args                []string
	}{
		{"of the person", "", "http://127.0.0.1:8081/login/callback", nil},
		{"of an organization", "acme", "https://pages.example.com/login/callback", []string{"--org", "acme", "--name", "Our Pawl", "--backend", "claude", "--pages-url", "https://pages.example.com/"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t)
			i.starts(c.args...)
			back := i.presses()
			status, said := i.get(back)
			if code := i.ends(); code != 0 || status != http.StatusOK {
				t.Fatalf("exit %d, the page %d %s\n%s", code, status, said, &i.stderr)
			}
			m := i.gh.Manifests()[0]
			if m.Org != c.org || m.Public || m.Hook.URL != "https://pawl.example.com/api/github/hook" || !*m.Hook.Active || len(m.Callbacks) != 1 || m.Callbacks[0] != c.callback {
				t.Errorf("the manifest: %+v", m)
			}
			if diff := cmp.Diff(map[string]os.FileMode{"app.pem": 0o600, "pawl.yml": 0o600}, i.files()); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			for _, want := range []string{i.gh.WebURL() + "/apps/pawl/installations/new", "_API_KEY", "pawl doctor --config pawl.yml", "pawl serve --config pawl.yml", "pawl login --config pawl.yml"} {
				if !strings.Contains(i.stdout.String(), want) || !strings.Contains(said, want) {
					t.Errorf("what is next lacks %q:\n%s", want, &i.stdout)
				}
			}
			secrets := i.stdout.String() + i.stderr.String() + said
			_, client := i.gh.OAuthClient()
			if strings.Contains(secrets, testrig.Secret) || strings.Contains(secrets, client) || strings.Contains(secrets, "PRIVATE KEY") {
				t.Errorf("a secret is shown:\n%s", secrets)
			}
			// The files work: the App they name can sign in.
			doctor := exec.Command(testrig.Program, "doctor", "--config", filepath.Join(i.dir, "pawl.yml"))
			doctor.Env = []string{"PATH=" + os.Getenv("PATH"), "OPENAI_API_KEY=x", "ANTHROPIC_API_KEY=x"}
			out, _ := doctor.CombinedOutput() // other checks may fail here
			for _, want := range []string{"signs in as pawl[bot] (App 4711)", "the App has what it needs", "the App subscribes to what it listens to"} {
				if !strings.Contains(string(out), want) {
					t.Errorf("doctor lacks %q:\n%s", want, out)
				}
			}
		})
	}
}

func TestSetupTakesNothingFromStrangers(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts()
	at, err := url.Parse(i.page)
	i.must(err)
	base := "http://" + at.Host
	back, err := url.Parse(i.presses())
	i.must(err)
	q := back.Query()
	with := func(code, state string) string {
		return base + "/created?" + url.Values{"code": {code}, "state": {state}}.Encode()
	}
	for _, c := range []struct {
		name, address string
		status        int
	}{
		{"the page without its secret", base + "/", http.StatusNotFound},
		{"a guess", base + "/" + strings.Repeat("A", 26), http.StatusNotFound},
		{"a code without a state", with(q.Get("code"), ""), http.StatusForbidden},
		{"a code with another state", with(q.Get("code"), strings.Repeat("A", 26)), http.StatusForbidden},
		{"the state without a code", with("", q.Get("state")), http.StatusBadRequest},
		{"a code that leads elsewhere", with("../../user", q.Get("state")), http.StatusBadRequest},
	} {
		if status, body := i.get(c.address); status != c.status || strings.Contains(body, q.Get("state")) {
			t.Errorf("%s: %d %s, want %d", c.name, status, body, c.status)
		}
	}
	req, err := http.NewRequest(http.MethodGet, i.page, nil)
	i.must(err)
	req.Host = "attacker.example:" + at.Port()
	resp, err := browser().Do(req)
	i.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("under another name: %s, want 421", resp.Status)
	}
	if resp, err = browser().PostForm(i.page, nil); err != nil || resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %v %v, want 405", resp.Status, err)
	}
	// After all that the person's own answer still counts.
	if status, body := i.get(back.String()); status != http.StatusOK || i.ends() != 0 {
		t.Errorf("the answer of GitHub: %d %s\n%s", status, body, &i.stderr)
	}
}

func TestAnAnswerOfGitHubCountsOnce(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts()
	back := i.presses()
	statuses := make(chan int, 5)
	for range cap(statuses) {
		go func() {
			resp, err := browser().Get(back)
			if err != nil { // pawl setup has ended meanwhile
				statuses <- http.StatusConflict
				return
			}
			resp.Body.Close()
			statuses <- resp.StatusCode
		}()
	}
	count := map[int]int{}
	for range cap(statuses) {
		count[<-statuses]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusOK: 1, http.StatusConflict: 4}, count); diff != "" || i.ends() != 0 {
		t.Errorf("answers (-want +got):\n%s%s", diff, &i.stderr)
	}
	if n := i.gh.Calls()["POST /app-manifests/{code}/conversions"]; n != 1 {
		t.Errorf("%d conversions, want 1", n)
	}
}
