package web_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/pawlbot/pawl/internal/web"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// browser is Debian's chromium without a window, signed in at a site.
type browser struct {
	t    *testing.T
	s    *site
	ctx  context.Context
	axe  string // the source of axe-core
	shot string // where pictures of the pages go; empty for none
}

// browse skips where there is no browser; .ci/setup installs what is needed.
func browse(t *testing.T, s *site) *browser {
	t.Helper()
	if testing.Short() {
		t.Skip("make check does without a browser")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium; .ci/setup installs it")
	}
	axe, err := os.ReadFile("../../testdata/browser/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skipf("there is no axe-core (%v); .ci/setup installs it", err)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, s: s, ctx: ctx, axe: string(axe), shot: os.Getenv("PAWL_SHOTS")}
	b.run(call(network.SetCookie, network.SetCookieParams{Name: s.cookie.Name, Value: s.cookie.Value, URL: s.url + "/"}))
	return b
}

// call is a command of the DevTools protocol as an action.
func call[P, R any](method cdp.Command[P, R], params P) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, method, params)
		return err
	})
}

func (b *browser) run(all ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	for _, a := range all {
		if _, err := chromedp.Run(b.ctx, a); err != nil {
			b.t.Fatal(err)
		}
	}
}

// eval is what an expression of JavaScript comes to, also where that takes a while.
func (b *browser) eval(expression string) string {
	b.t.Helper()
	s, err := chromedp.Run(b.ctx, chromedp.Evaluate[string]("Promise.resolve("+expression+").then(String)", chromedp.EvalAwaitPromise))
	if err != nil {
		b.t.Fatalf("%.200s: %v", expression, err)
	}
	return s
}

// await waits until an expression holds.
func (b *browser) await(what, expression string) {
	b.t.Helper()
	for range 200 {
		if b.eval(expression) == "true" {
			return
		}
		b.run(chromedp.Sleep(50 * time.Millisecond))
	}
	b.t.Fatalf("in vain for 10 s: %s", what)
}

// looked opens a page at a width in a colour scheme, has axe judge it, and takes a picture.
func (b *browser) looked(name, path, scheme string, width int64) {
	b.t.Helper()
	b.run(
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.EmulateViewport(width, 900),
		chromedp.Navigate(b.s.url+path),
	)
	b.eval("(() => {" + b.axe + "})()")
	found := b.eval(`axe.run(document).then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html + " " + n.failureSummary)])))`)
	if found != "[]" {
		b.t.Errorf("%s, %s, %d px: axe found %.2000s", path, scheme, width, found)
	}
	if over := b.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth"); over != "0" {
		wide := b.eval(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".log, pre")).slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n")`)
		b.t.Errorf("%s at %d px scrolls sideways by %s px:\n%s", path, width, over, wide)
	}
	if b.shot != "" { // .ci/test names a folder
		picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
		if err != nil {
			b.t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(b.shot, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), picture, 0o644); err != nil {
			b.t.Error(err)
		}
	}
}

// printed writes what an agent of busy printed so far.
func (s *site) printed(lines ...string) {
	s.t.Helper()
	dir := filepath.Join(s.data, "attempts", "acme", "gadgets", "44", "1")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		s.t.Fatal(err)
	}
	f, err := os.OpenFile(filepath.Join(dir, "transcript"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteString(strings.Join(lines, "\n") + "\n"); err != nil {
		s.t.Fatal(err)
	}
}

// says and calls are lines of Codex.
func says(words string) string {
	quoted, _ := json.Marshal(words)
	return fmt.Sprintf(`{"type":"item.completed","item":{"id":"i1","type":"agent_message","text":%s}}`, quoted)
}

func calls(command string) string {
	quoted, _ := json.Marshal(command)
	return fmt.Sprintf(`{"type":"item.started","item":{"id":"i2","type":"command_execution","command":%s,"status":"in_progress"}}`, quoted)
}

// seen are the pages that are looked at: a name, the pattern that answers, and an address.
var seen = [][3]string{
	{"threads", "GET /{$}", "/"}, {"none", "GET /{$}", "/?q=nothing+like+this"},
	{"costs", "GET /costs", "/costs"}, {"accounts", "GET /accounts", "/accounts"}, {"backends", "GET /backends", "/backends"},
	{"solved", "GET /threads/{owner}/{repo}/{n}", "/threads/acme/widgets/7"}, {"running", "GET /threads/{owner}/{repo}/{n}", "/threads/acme/gadgets/44"},
	{"limited", "GET /threads/{owner}/{repo}/{n}", "/threads/acme/gadgets/41"}, {"climbing", "GET /threads/{owner}/{repo}/{n}", "/threads/acme/gears/12"},
	{"missing", "GET /threads/{owner}/{repo}/{n}", "/threads/acme/widgets/99"},
	{"log", "GET /threads/{owner}/{repo}/{n}/attempts/{attempt}/log", "/threads/acme/gadgets/44/attempts/1/log"},
	{"no-login", "GET /login/github", "/login/github"}, {"login-refused", "GET /login/callback", "/login/callback"}, {"used-link", "GET /login/link/{secret}", "/login/link/used"},
}

// noPage are addresses that answer with no HTML.
var noPage = map[string]string{
	"GET /threads/{owner}/{repo}/{n}/live":                   "/threads/acme/widgets/7/live",
	"GET /threads/{owner}/{repo}/{n}/attempts/{attempt}/raw": "/threads/acme/gadgets/44/attempts/1/raw",
}

func TestEveryPageReadsWellInABrowser(t *testing.T) {
	var o web.Options
	s := open(t, func(given *web.Options) { given.Learning = learnt; o = *given })
	o.Access = web.Access{URL: s.url, Key: make([]byte, 64)}
	b := browse(t, s)
	b.looked("empty", "/", "light", 1280)
	s.everything()
	s.climbing()
	s.spentOverDays()
	s.printed(says("I look at the parser first."), calls("rg -n 'func parse' ."), says("The slow part is the copy in next()."))
	for _, pattern := range web.PagePatterns(o) {
		if slices.ContainsFunc(seen, func(page [3]string) bool { return page[1] == pattern }) {
			continue
		}
		if noPage[pattern] == "" {
			t.Errorf("nobody looks at %s: add it to seen", pattern)
		} else if answer, _ := s.get(noPage[pattern]); strings.Contains(answer.Header.Get("Content-Type"), "html") {
			t.Errorf("%s is a page: add it to seen", pattern)
		}
	}
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			for _, page := range seen {
				b.looked(page[0], page[2], scheme, width)
			}
		}
	}
	b.run(call(network.ClearBrowserCookies, cdp.Empty{}))
	for _, scheme := range []string{"light", "dark"} {
		b.looked("login", "/", scheme, 390)
	}
}

func TestARunningAttemptIsFollowedWhileOneReads(t *testing.T) {
	var clock atomic.Int64
	s := open(t, func(o *web.Options) { o.Now = func() time.Time { return now.Add(time.Duration(clock.Load())) } })
	s.busy()
	var log []string
	for n := range 1000 {
		log = append(log, says(fmt.Sprintf("line %d", n)))
	}
	s.printed(log...)
	b := browse(t, s)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.url+"/threads/acme/gadgets/44"))
	// Where a check run and the comment lead, the live lines are seen without a scroll, also on a telephone.
	for _, width := range []int64{390, 1280} {
		b.run(chromedp.EmulateViewport(width, 844))
		if got := b.eval(`(() => { const log = document.querySelector(".live .log").getBoundingClientRect(); return log.top >= 0 && log.top < innerHeight - 100 })()`); got != "true" {
			t.Errorf("at %d px the live log is not in sight", width)
		}
	}
	b.eval(`document.querySelector(".timeline details summary").click()`)
	const places = `JSON.stringify([...document.querySelectorAll("main > *:not([data-changed]), .live > *, .timeline > li, details")].map(e => [e.tagName, e.getBoundingClientRect().top, e.open]))`
	placed := b.eval(places)
	last := `document.querySelector(".log").lastElementChild.textContent`
	if got := b.eval(last); got != "line 999" {
		t.Fatalf("the log ends with %q", got)
	}
	s.printed(calls("go test ./..."), says("it is faster now"))
	b.await("the new line", last+` === "it is faster now"`)
	if got := b.eval(`document.querySelector("[data-call]").textContent`); got != "go test ./..." {
		t.Errorf("the last call is %q", got)
	}
	if used := `document.querySelector("[data-used]").textContent`; b.eval(used) != "not known yet" {
		t.Errorf("it used %s", b.eval(used))
	} else {
		s.spends(policy.Spent{N: 1, Tokens: policy.Tokens{Input: 12_000, Output: 345}, CostUSD: cost(0.12)})
		b.await("what it used", used+` === "12\u2009345 tokens, $0.12"`)
	}
	elapsed := b.eval(`document.querySelector("[data-elapsed]").textContent`)
	clock.Add(int64(90 * time.Second))
	b.await("the time", `document.querySelector("[data-elapsed]").textContent !== "`+elapsed+`"`)
	// Who reads earlier lines stays there, whatever comes below.
	b.eval(`document.querySelector(".log").scrollTop = 0`)
	b.await("earlier lines", `document.querySelector(".log").childElementCount > 350`)
	at := `document.elementFromPoint(document.querySelector(".log").getBoundingClientRect().x + 20, document.querySelector(".log").getBoundingClientRect().y + 20).textContent`
	b.await("the scroll to end", `document.querySelector(".log").scrollTop > 0`)
	before := b.eval(at)
	s.printed(says("below"))
	b.await("the line below", last+` === "below"`)
	if got := b.eval(at); got != before {
		t.Errorf("%q was read, and %q is there now", before, got)
	}
	s.happened("acme/gadgets#44", now, thread.KindControl, thread.Control{Feedback: remark(policy.FromComment, "octocat", "stop", "command stop", "/pawl stop")})
	b.await("the notice", `!document.querySelector("[data-changed]").hidden`)
	s.happened("acme/gadgets#44", now, thread.KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Killed, Outcome: policy.Cancelled})
	b.await("the end", `document.querySelector(".live h2").textContent === "The attempt has ended"`)
	if got := b.eval(at); got != before {
		t.Errorf("%q was read when the attempt ended, and %q is there now", before, got)
	}
	if now := b.eval(places); now != placed {
		t.Errorf("things moved or closed while one read:\n%s\n%s", placed, now)
	}
}

func TestPagesAreReadWithoutScriptsAndByTheKeyboard(t *testing.T) {
	s := open(t, nil)
	s.everything()
	s.printed(says("hello"))
	b := browse(t, s)
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(s.url+"/threads/acme/gadgets/44"))
	if got := b.eval(`document.querySelector(".log").textContent.trim()`); got != "hello" {
		t.Errorf("without scripts the log says %q", got)
	}
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false}), chromedp.Navigate(s.url+"/"), chromedp.KeyEvent("\t"))
	if got := b.eval(`document.activeElement.textContent`); got != "Skip to the content" {
		t.Errorf("the first stop of the keyboard is %q", got)
	}
	// The stop button by the keyboard alone.
	b.run(chromedp.Navigate(s.url + "/threads/acme/gadgets/44"))
	for range 40 {
		if b.eval(`document.activeElement.textContent`) == "Stop" {
			break
		}
		b.run(chromedp.KeyEvent("\t"))
	}
	b.run(chromedp.KeyEvent("\r"))
	b.await("the order in the log", `document.body !== null && document.body.textContent.includes("an operator at the server ordered: stop")`)
	if why := b.eval(`[...document.querySelectorAll(".orders form")].find(f => f.textContent.includes("Retry")).textContent`); !strings.Contains(why, "Not now: an attempt is running; stop it first.") {
		t.Errorf("the button that cannot act says %q", why)
	}
}
