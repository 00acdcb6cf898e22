package setup

import (
	"context"
	"encoding/base64"
	"html"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

const webhookSecret = "a webhook secret of some length"

// flow is one run of pawl setup with a fake GitHub.
type flow struct {
	*testing.T
	github *fakegithub.Server
	flags  Flags
	page   *url.URL // nil if setup ended before it showed a page
	output screen
	stop   context.CancelFunc
	ended  chan error
}

func newFlow(t *testing.T) *flow {
	t.Helper()
	github, err := fakegithub.New(fakegithub.Options{AppID: 4711, WebhookSecret: webhookSecret})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { github.Close() })
	return &flow{T: t, github: github, ended: make(chan error, 1), output: screen{shown: make(chan string, 1)}, flags: Flags{
		URL:     "https://pawl.example.com/",
		GitHub:  github.WebURL(),
		Name:    "pawl",
		Config:  filepath.Join(t.TempDir(), "pawl.yml"),
		Backend: config.Codex,
		Listen:  "127.0.0.1:0",
	}}
}

func (f *flow) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// screen is pawl setup's output. It reports the first address or link in it.
type screen struct {
	sync.Mutex
	text  strings.Builder
	shown chan string
}

var shownPattern = regexp.MustCompile(`(?m)^ *(http://127\.0\.0\.1:\d+/[A-Z2-7]+|data:text/html;base64,\S+)$`)

func (s *screen) Write(p []byte) (int, error) {
	s.Lock()
	defer s.Unlock()
	s.text.Write(p)
	if found := shownPattern.FindSubmatch(p); found != nil {
		s.shown <- string(found[1])
	}
	return len(p), nil
}

func (s *screen) String() string {
	s.Lock()
	defer s.Unlock()
	return s.text.String()
}

// start runs pawl setup until it shows its page or ends.
func (f *flow) start() {
	f.Helper()
	s, err := New(f.flags, "test")
	f.must(err)
	ctx, stop := context.WithCancel(f.Context())
	f.Cleanup(stop)
	f.stop = stop
	go func() { f.ended <- s.Run(ctx, nil, &f.output) }()
	select {
	case shown := <-f.output.shown:
		f.page, err = url.Parse(shown)
		f.must(err)
	case err := <-f.ended:
		f.ended <- err
	}
}

// fails waits for an error that contains these words but not the code, and checks that no file was written.
func (f *flow) fails(words, code string) {
	f.Helper()
	err := <-f.ended
	if err == nil || !strings.Contains(err.Error(), words) || code != "" && strings.Contains(err.Error(), code) {
		f.Errorf("setup ended with %v, want %q without the code %q", err, words, code)
	}
	if files := f.files(); len(files) > 0 {
		f.Errorf("files: %v, want none", files)
	}
}

func (f *flow) files() map[string]os.FileMode {
	f.Helper()
	all, err := os.ReadDir(filepath.Dir(f.flags.Config))
	f.must(err)
	modes := map[string]os.FileMode{}
	for _, one := range all {
		info, err := one.Info()
		f.must(err)
		modes[one.Name()] = info.Mode()
	}
	return modes
}

var browser = http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}

// get reads a page under a host name.
func (f *flow) get(host, address string) (status int, body string) {
	f.Helper()
	req, err := http.NewRequestWithContext(f.Context(), http.MethodGet, address, nil)
	f.must(err)
	req.Host = host
	resp, err := browser.Do(req)
	f.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	f.must(err)
	return resp.StatusCode, string(text)
}

var (
	formAction   = regexp.MustCompile(`action=["']([^"']*)["']`)
	formManifest = regexp.MustCompile(`name="?manifest"? value=(?:"([^"]*)"|'([^']*)')`)
)

// press submits a page's form to GitHub, and returns the manifest and GitHub's redirect.
func (f *flow) press(form string) (manifest string, back *url.URL) {
	f.Helper()
	action, value := formAction.FindStringSubmatch(form), formManifest.FindStringSubmatch(form)
	if action == nil || value == nil {
		f.Fatalf("no form: %s", form)
	}
	manifest = html.UnescapeString(value[1] + value[2])
	resp, err := browser.PostForm(html.UnescapeString(action[1]), url.Values{"manifest": {manifest}})
	f.must(err)
	resp.Body.Close()
	back, err = resp.Location()
	f.must(err)
	return manifest, back
}

// asks creates the App on GitHub and returns the redirect.
func (f *flow) asks() (back *url.URL) {
	f.Helper()
	f.start()
	if f.page == nil {
		f.Fatalf("no page: %v", <-f.ended)
	}
	_, form := f.get("", f.page.String())
	_, back = f.press(form)
	return back
}

func TestSetupCreatesTheAppAndItsFiles(t *testing.T) {
	for name, c := range map[string]struct {
		edit     func(*Flags)
		callback string
	}{
		"for a user": {func(*Flags) {}, "http://127.0.0.1:8081/login/callback"},
		"for an organization": {func(f *Flags) {
			f.Org, f.Name, f.Backend, f.Pages = "acme", "Our Pawl", config.Claude, "https://pages.example.com/"
		}, "https://pages.example.com/login/callback"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, v := range config.Vendors() {
				t.Setenv(v.KeyVariable, "")
				os.Unsetenv(v.KeyVariable)
			}
			f := newFlow(t)
			c.edit(&f.flags)
			status, page := f.get("", f.asks().String())
			if err := <-f.ended; err != nil || status != http.StatusOK {
				t.Fatalf("%v; the page: %d %s", err, status, page)
			}
			m := f.github.Manifests()[0]
			got := []any{m.Org, m.Public, m.Hook.URL, *m.Hook.Active, m.Callbacks}
			want := []any{f.flags.Org, false, "https://pawl.example.com/api/github/hook", true, []string{c.callback}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("the manifest: %s", diff)
			}
			if diff := cmp.Diff(map[string]os.FileMode{"app.pem": 0o600, "pawl.yml": 0o600}, f.files()); diff != "" {
				t.Errorf("files: %s", diff)
			}
			for _, step := range []string{
				f.github.WebURL() + "/apps/pawl/installations/new", f.github.WebURL() + "/issues", "_API_KEY",
				"pawl doctor --config", "pawl serve --config", "pawl login --config",
			} {
				if !strings.Contains(f.output.String(), step) || !strings.Contains(page, step) {
					t.Errorf("the next steps lack %q:\n%s", step, &f.output)
				}
			}
			_, client := f.github.OAuthClient()
			for _, secret := range []string{webhookSecret, client, "PRIVATE KEY"} {
				if strings.Contains(f.output.String()+page, secret) {
					t.Errorf("%q is shown", secret)
				}
			}
			cfg, err := config.Load(f.flags.Config, func(string) (string, bool) { return "x", true })
			f.must(err)
			key, err := cfg.GitHub.App.Key()
			if err != nil || cfg.GitHub.App.IntegrationID != 4711 || key.Reveal() != string(f.github.PrivateKeyPEM()) {
				t.Errorf("the App %d has another key, or %v", cfg.GitHub.App.IntegrationID, err)
			}
		})
	}
}

func TestSetupIgnoresForeignRequests(t *testing.T) {
	f := newFlow(t)
	back := f.asks()
	answer := func(code, state string) string {
		return "/created?" + url.Values{"code": {code}, "state": {state}}.Encode()
	}
	code, state := back.Query().Get("code"), back.Query().Get("state")
	for _, c := range []struct {
		name, host, path string
		status           int
	}{
		{"the page without its secret", "", "/", http.StatusNotFound},
		{"a guess", "", "/" + strings.Repeat("A", 26), http.StatusNotFound},
		{"a code without a state", "", answer(code, ""), http.StatusForbidden},
		{"a code with another state", "", answer(code, strings.Repeat("A", 26)), http.StatusForbidden},
		{"the state without a code", "", answer("", state), http.StatusBadRequest},
		{"a path instead of a code", "", answer("../../user", state), http.StatusBadRequest},
		{"another name", "attacker.example:" + f.page.Port(), f.page.Path, http.StatusMisdirectedRequest},
	} {
		if status, body := f.get(c.host, "http://"+f.page.Host+c.path); status != c.status || strings.Contains(body, state) {
			t.Errorf("%s: %d %s, want %d", c.name, status, body, c.status)
		}
	}
	resp, err := browser.PostForm(f.page.String(), nil)
	f.must(err)
	resp.Body.Close()
	if resp.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("a POST: %s, want 405", resp.Status)
	}
	// The user's own answer still works after all that.
	if status, body := f.get("", back.String()); status != http.StatusOK || <-f.ended != nil {
		t.Errorf("GitHub's redirect: %d %s", status, body)
	}
}

func TestGitHubsAnswerCountsOnce(t *testing.T) {
	f := newFlow(t)
	back := f.asks()
	statuses := make(chan int, 5)
	for range cap(statuses) {
		go func() {
			resp, err := browser.Get(back.String())
			if err != nil { // setup has ended
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
	f.must(<-f.ended)
	if diff := cmp.Diff(map[int]int{http.StatusOK: 1, http.StatusConflict: 4}, count); diff != "" {
		t.Errorf("answers: %s", diff)
	}
	if n := f.github.Calls()["POST /app-manifests/{code}/conversions"]; n != 1 {
		t.Errorf("%d conversions, want 1", n)
	}
}

// The server's machine has no browser and no address: the link contains the form, and the user pastes GitHub's answer. A
// wrong paste is explained, and the next one works.
func TestSetupWithoutBrowserAndAddress(t *testing.T) {
	right := func(back string) string { return back }
	for name, c := range map[string]struct {
		pastes  []func(back string) string
		message string // the message about the paste before the last one
		fails   string // empty for success
	}{
		"the address": {[]func(string) string{right}, "", ""},
		"another state first": {[]func(string) string{
			func(back string) string { return strings.Replace(back, "state=", "state=X", 1) }, right,
		}, "belongs to another link", ""},
		"no address first": {[]func(string) string{
			func(string) string { return "hello" }, right,
		}, "that is not the address; it begins with http", ""},
		"a blank line first": {[]func(string) string{
			func(string) string { return "" }, right,
		}, "", ""},
		"an address without a code first": {[]func(string) string{
			func(back string) string { return strings.Replace(back, "code=", "x=", 1) }, right,
		}, "no code=…", ""},
		"a code that was cut first": {[]func(string) string{
			func(back string) string { return strings.Replace(back, "code=", "code=x", 1) }, right,
		}, "the code was used before or is older than an hour", ""},
		"a path instead of a code": {[]func(string) string{
			func(back string) string { return strings.Replace(back, "code=", "code=../", 1) }, right,
		}, "is not one of GitHub's codes", ""},
		"no valid paste before the input ends": {[]func(string) string{
			func(string) string { return "hello" },
		}, "", "that is not the address"},
		"no paste": {nil, "", "ended before an address was pasted"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			f.flags.URL, f.flags.Headless = "", true
			s, err := New(f.flags, "test")
			f.must(err)
			in, keys := io.Pipe()
			go func() { f.ended <- s.Run(t.Context(), in, &f.output) }()
			form, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(<-f.output.shown, "data:text/html;base64,"))
			f.must(err)
			_, back := f.press(string(form))
			if !strings.HasPrefix(back.String(), f.github.WebURL()+"/settings/apps?code=") {
				t.Errorf("GitHub redirects to %s, which is not a page of GitHub", back)
			}
			for _, paste := range c.pastes {
				_, err = io.WriteString(keys, paste(back.String())+"\n")
				f.must(err)
			}
			f.must(keys.Close())
			if c.fails != "" {
				f.fails(c.fails, "")
				return
			}
			f.must(<-f.ended)
			if output := f.output.String(); !strings.Contains(output, c.message) || strings.Contains(output, "Not accepted") != (c.message != "") {
				t.Errorf("the output lacks %q about the wrong paste:\n%s", c.message, output)
			}
			if !strings.Contains(f.output.String(), "Run the server; it needs no public address: pawl serve") {
				t.Errorf("the output is\n%s", &f.output)
			}
			cfg, err := config.Load(f.flags.Config, func(string) (string, bool) { return "x", true })
			if err != nil || cfg.GitHub.Receive != config.ReceivePoll {
				t.Errorf("receive is %q, %v", cfg.GitHub.Receive, err)
			}
		})
	}
}

// A link with the whole page had 3,443 characters.
func TestLinkIsShort(t *testing.T) {
	f := newFlow(t)
	f.flags.GitHub, f.flags.URL = "https://github.com", ""
	s, err := New(f.flags, "test")
	f.must(err)
	link, err := s.link(strings.Repeat("A", 26))
	f.must(err)
	if len(link) > 1100 {
		t.Errorf("%d characters: %s", len(link), link)
	}
}

func TestLinkQuotesItsValues(t *testing.T) {
	f := newFlow(t)
	f.flags.Name = `Ada's "<b>&#39;`
	s, err := New(f.flags, "test")
	f.must(err)
	link, err := s.link("S")
	f.must(err)
	form, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(link, "data:text/html;base64,"))
	f.must(err)
	if _, back := f.press(string(form)); back.Query().Get("state") != "S" {
		t.Errorf("GitHub redirects to %s", back)
	}
	if got := f.github.Manifests()[0].Name; got != f.flags.Name {
		t.Errorf("the App is called %q, want %q", got, f.flags.Name)
	}
}

// If the public address forwards to the page's port, users reach the page there, and GitHub redirects there.
func TestSetupWorksAtThePublicAddress(t *testing.T) {
	f := newFlow(t)
	f.start()
	const public = "pawl.example.com"
	_, form := f.get(public, f.page.String()+"/remote")
	manifest, back := f.press(form)
	if !strings.Contains(manifest, `"redirect_url":"https://pawl.example.com/created"`) {
		t.Fatalf("GitHub would redirect elsewhere: %s", manifest)
	}
	if status, page := f.get(public, "http://"+f.page.Host+back.RequestURI()); status != http.StatusOK {
		t.Errorf("the last page: %d %s", status, page)
	}
	f.must(<-f.ended)
}

func TestSetupRefusesFlags(t *testing.T) {
	for want, edit := range map[string]func(*Flags){
		"--url: http://pawl.example.com does not begin with https://":      func(f *Flags) { f.URL = "http://pawl.example.com" },
		"--url: use an address like https://pawl.example.com, without":     func(f *Flags) { f.URL = "https://a:b@pawl.example.com" },
		"--github: http://github.example.com does not begin with https://": func(f *Flags) { f.GitHub = "http://github.example.com" },
		"--github: https://github.com/acme has a path; name the host only": func(f *Flags) { f.GitHub = "https://github.com/acme" },
		`--org: "a/../b" is not a valid name of a GitHub organization`:     func(f *Flags) { f.Org = "a/../b" },
		"--name: an App's name has 1 to 34 characters":                     func(f *Flags) { f.Name = strings.Repeat("x", 35) },
		`--backend: "perl" is not one of codex, claude, gemini, opencode`:  func(f *Flags) { f.Backend = "perl" },
	} {
		flags := Flags{GitHub: "https://github.com", Name: "pawl", Config: "pawl.yml", Backend: config.Codex}
		edit(&flags)
		if _, err := New(flags, "test"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

// Setup creates nothing if one of its files exists, or appears during the setup.
func TestSetupOverwritesNothing(t *testing.T) {
	for _, name := range []string{"pawl.yml", "app.pem"} {
		f := newFlow(t)
		f.must(os.WriteFile(filepath.Join(filepath.Dir(f.flags.Config), name), []byte("mine"), 0o644))
		f.start()
		if err := <-f.ended; err == nil || !strings.Contains(err.Error(), name+" exists already, and nothing is overwritten") {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(map[string]os.FileMode{name: 0o644}, f.files()); diff != "" || f.page != nil {
			t.Errorf("%s: the page %v, files %s", name, f.page, diff)
		}
	}
	f := newFlow(t)
	f.flags.Config = filepath.Join(t.TempDir(), "none/pawl.yml")
	f.start()
	if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "no such file or directory (make it, or let this user own it)") {
		t.Errorf("without a folder: %v", err)
	}
	f = newFlow(t)
	back, target := f.asks(), filepath.Join(t.TempDir(), "elsewhere")
	f.must(os.WriteFile(target, []byte("mine"), 0o600))
	f.must(os.Symlink(target, filepath.Join(filepath.Dir(f.flags.Config), "app.pem")))
	f.get("", back.String())
	if err := <-f.ended; err == nil || !strings.Contains(err.Error(), "make a new private key and webhook secret there") {
		t.Errorf("a link that appeared during the setup: %v", err)
	}
	if b, err := os.ReadFile(target); err != nil || string(b) != "mine" {
		t.Errorf("the file behind the link contains %q, %v", b, err)
	}
}

func TestSetupReportsTheAppAfterGitHubFails(t *testing.T) {
	for name, c := range map[string]struct {
		fault fakegithub.Fault
		fails string // empty for success
	}{
		"temporarily":        {fakegithub.Fault{Status: 502}, ""},
		"permanently":        {fakegithub.Fault{Status: 502, Times: -1}, "the App itself may exist now: delete it at"},
		"with a lost answer": {fakegithub.Fault{AbortAfter: true}, "the code was used before or is older than an hour"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFlow(t)
			c.fault.Route = "POST /app-manifests/*/conversions"
			f.github.Inject(c.fault)
			back := f.asks()
			code := back.Query().Get("code")
			if _, page := f.get("", back.String()); strings.Contains(page, code) {
				t.Errorf("the code is shown: %s", page)
			}
			if c.fails == "" {
				f.must(<-f.ended)
				return
			}
			f.fails(c.fails, code)
		})
	}
}

func TestSetupEndsAtInterrupt(t *testing.T) {
	f := newFlow(t)
	f.start()
	f.stop()
	f.fails("interrupted; no App was created", "")
}

// Another user learned the state and sends the code of their own App.
func TestSetupRefusesAForeignApp(t *testing.T) {
	f := newFlow(t)
	f.flags.Org = "acme"
	back := f.asks()
	const theirs = `{"name": "n", "url": "https://m.example", "hook_attributes": {"url": "https://m.example/hook"}, "redirect_url": "http://127.0.0.1:1/"}`
	_, made := f.press(`<form action="` + f.github.WebURL() + `/organizations/mallory/settings/apps/new"><input name="manifest" value="` + html.EscapeString(theirs) + `">`)
	q := back.Query()
	q.Set("code", made.Query().Get("code"))
	back.RawQuery = q.Encode()
	f.get("", back.String())
	f.fails(`it belongs to "mallory", not to "acme"; nothing was written`, "")
}
