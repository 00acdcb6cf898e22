package main

import (
	"bufio"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/testrig"
)

// The server's machine has no browser and no address: the link holds the form, and the person brings along what
// GitHub answered.
func TestSetupWithoutABrowserAndAnAddress(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	try := func(paste func(back string) string) (code int, out string) {
		cmd := exec.Command(testrig.Program, "setup", "--headless", "--github", i.gh.WebURL())
		cmd.Dir, cmd.Stderr = i.dir, &i.stderr
		stdin, err := cmd.StdinPipe()
		i.must(err)
		stdout, err := cmd.StdoutPipe()
		i.must(err)
		i.must(cmd.Start())
		var said strings.Builder
		lines := bufio.NewReader(io.TeeReader(stdout, &said))
		for {
			line, err := lines.ReadString('\n')
			i.must(err)
			form, ok := strings.CutPrefix(strings.TrimSpace(line), "data:text/html;base64,")
			if !ok {
				continue
			}
			page, err := base64.StdEncoding.DecodeString(form)
			i.must(err)
			action, manifest := formAction.FindSubmatch(page), formManifest.FindSubmatch(page)
			resp, err := browser().PostForm(html.UnescapeString(string(action[1])), url.Values{"manifest": {html.UnescapeString(string(manifest[1]))}})
			i.must(err)
			resp.Body.Close()
			_, err = io.WriteString(stdin, paste(resp.Header.Get("Location"))+"\n")
			i.must(err)
			break
		}
		_, err = io.Copy(io.Discard, lines)
		i.must(err)
		_ = cmd.Wait() // its exit code tells
		return cmd.ProcessState.ExitCode(), said.String()
	}
	if code, _ := try(func(back string) string { return strings.Replace(back, "state=", "state=X", 1) }); code != exitFailed || !strings.Contains(i.stderr.String(), "its state is another") {
		t.Errorf("with another state: exit %d, %s", code, &i.stderr)
	}
	if code, _ := try(func(string) string { return "hello" }); code != exitFailed {
		t.Errorf("with no address: exit %d", code)
	}
	code, said := try(func(back string) string {
		if !strings.HasPrefix(back, i.gh.WebURL()+"/settings/apps?code=") {
			t.Errorf("GitHub leads to %s, which is no page of GitHub's own", back)
		}
		return back
	})
	if code != exitDone || !strings.Contains(said, "Run it; it needs no public address: pawl serve --config pawl.yml") {
		t.Fatalf("exit %d\n%s%s", code, said, &i.stderr)
	}
	data, err := os.ReadFile(filepath.Join(i.dir, "pawl.yml"))
	i.must(err)
	cfg, err := config.Parse("pawl.yml", data, func(string) (string, bool) { return "x", true }, true)
	if err != nil || cfg.GitHub.Receive != config.ReceivePoll {
		t.Errorf("receive is %q, %v:\n%s", cfg.GitHub.Receive, err, data)
	}
}

// The page is reached under the server's public address where that leads to its port, and GitHub leads back there.
func TestSetupUnderThePublicAddress(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.starts()
	at, err := url.Parse(i.page)
	i.must(err)
	ask := func(path string) (int, string) {
		req, err := http.NewRequest(http.MethodGet, "http://"+at.Host+path, nil)
		i.must(err)
		req.Host = "pawl.example.com"
		resp, err := browser().Do(req)
		i.must(err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		i.must(err)
		return resp.StatusCode, string(body)
	}
	_, page := ask(at.Path + "/remote")
	manifest := html.UnescapeString(formManifest.FindStringSubmatch(page)[1])
	if !strings.Contains(manifest, `"redirect_url":"https://pawl.example.com/created"`) {
		t.Fatalf("GitHub would lead elsewhere: %s", manifest)
	}
	resp, err := browser().PostForm(html.UnescapeString(formAction.FindStringSubmatch(page)[1]), url.Values{"manifest": {manifest}})
	i.must(err)
	resp.Body.Close()
	back, err := url.Parse(resp.Header.Get("Location"))
	i.must(err)
	status, next := ask(back.RequestURI())
	for _, link := range []string{`<a href="` + i.gh.WebURL() + `/apps/pawl/installations/new">`, `<a href="` + i.gh.WebURL() + `/issues">`, "<code>pawl doctor --config pawl.yml</code>"} {
		if status != http.StatusOK || !strings.Contains(next, link) {
			t.Errorf("%d: the last page lacks %s:\n%s", status, link, next)
		}
	}
	if code := i.ends(); code != exitDone {
		t.Errorf("exit %d: %s", code, render.Clean(i.stderr.String()))
	}
}
