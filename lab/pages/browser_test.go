package pages

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"

	"github.com/pawlbot/pawl/lab/rig"
)

// browser is Debian's chromium in headless mode, signed in to a site.
type browser struct {
	t    *testing.T
	s    *site
	ctx  context.Context
	axe  string // the source of axe-core, which checks accessibility
	shot string // the folder for pictures of the pages; empty for none
}

// browse starts a browser. It skips the test without chromium, which .ci/setup installs.
func browse(t *testing.T, s *site) *browser {
	t.Helper()
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("there is no chromium; .ci/setup installs it")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &browser{t: t, s: s, ctx: ctx, shot: os.Getenv("PAWL_SHOTS")}
	b.run(call(network.SetCookie, network.SetCookieParams{Name: s.cookie.Name, Value: s.cookie.Value, URL: s.url + "/"}))
	return b
}

// browseWithAxe starts a browser with axe-core. It skips the test without axe-core.
func browseWithAxe(t *testing.T, s *site) *browser {
	t.Helper()
	axe, err := os.ReadFile("../../testdata/browser/node_modules/axe-core/axe.min.js")
	if err != nil {
		t.Skipf("there is no axe-core (%v); .ci/setup installs it", err)
	}
	b := browse(t, s)
	b.axe = string(axe)
	return b
}

// call returns an action that sends a command of the DevTools protocol.
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

// eval returns the value of a JavaScript expression, and waits if it is a promise.
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
	for range 600 {
		if b.eval(expression) == "true" {
			return
		}
		b.run(chromedp.Sleep(50 * time.Millisecond))
	}
	b.t.Fatalf("not within 30 s: %s", what)
}

// checkPage opens a page with a window's width and a colour scheme, checks it with axe, and takes a picture.
func (b *browser) checkPage(path, scheme string, width int64) {
	b.t.Helper()
	b.visit(b.s.url+path, scheme, width)
	b.eval("(() => {" + b.axe + "})()")
	found := b.eval(`axe.run(document).then(r => JSON.stringify(r.violations.map(v => [v.id, v.nodes.map(n => n.html + " " + n.failureSummary)])))`)
	if found != "[]" {
		b.t.Errorf("%s, %s, %d px: axe found %.2000s", path, scheme, width, found)
	}
	if over := b.eval("document.documentElement.scrollWidth - document.documentElement.clientWidth"); over != "0" {
		wide := b.eval(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth && !e.closest(".log, pre")).slice(0, 5).map(e => e.outerHTML.slice(0, 200)).join("\n")`)
		b.t.Errorf("%s at %d px scrolls sideways by %s px:\n%s", path, width, over, wide)
	}
	b.shoot(fileName(path), scheme, width)
}

// visit opens an address with a window's width and a colour scheme.
func (b *browser) visit(address, scheme string, width int64) {
	b.t.Helper()
	b.run(
		call(emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}}),
		chromedp.EmulateViewport(width, 900),
		chromedp.Navigate(address),
	)
}

// shoot saves a picture of the page if make test-all set a folder.
func (b *browser) shoot(name, scheme string, width int64) {
	b.t.Helper()
	if b.shot == "" {
		return
	}
	picture, err := chromedp.Run(b.ctx, chromedp.FullScreenshot(100))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(b.shot, fmt.Sprintf("%s-%s-%d.png", name, scheme, width)), picture, 0o644); err != nil {
		b.t.Error(err)
	}
}

func fileName(path string) string {
	name := strings.Trim(strings.Map(func(r rune) rune {
		if strings.ContainsRune("/?=&#%", r) {
			return '-'
		}
		return r
	}, path), "-")
	if name == "" {
		return "threads"
	}
	return name
}

// maxPages bounds the crawl; the site has about 25.
const maxPages = 80

// crawl follows every link from a page to the site itself and returns the paths of its HTML pages.
func (b *browser) crawl(from string) []string {
	b.t.Helper()
	var pages []string
	for queue := []string{from}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if slices.Contains(pages, path) {
			continue
		}
		b.run(chromedp.Navigate(b.s.url + path))
		if b.eval("document.contentType") != "text/html" {
			continue
		}
		if pages = append(pages, path); len(pages) > maxPages {
			b.t.Fatalf("more than %d pages: %q", maxPages, pages)
		}
		links := b.eval(`[...document.querySelectorAll("a[href]")].map(a => new URL(a.href)).filter(u => u.origin === location.origin).map(u => u.pathname + u.search).join("\n")`)
		for link := range strings.SplitSeq(links, "\n") {
			if link != "" && !strings.HasSuffix(link, "/raw") { // a download is not a page
				queue = append(queue, link)
			}
		}
	}
	return pages
}

// TestEveryPageWorksInABrowser checks every linked page, and the login pages, with axe-core.
func TestEveryPageWorksInABrowser(t *testing.T) {
	s := open(t)
	b := browseWithAxe(t, s)
	b.checkPage("/", "light", 1280) // while there are no threads
	s.work()
	found := b.crawl("/")
	for _, path := range []string{"/costs", "/accounts", "/backends", s.thread(s.solved), s.thread(s.running), s.thread(s.running) + "/attempts/1/log"} {
		if !slices.Contains(found, path) {
			t.Errorf("no link leads to %s; there are %q", path, found)
		}
	}
	found = append(found, s.thread(99), "/?q=nothing+like+this", "/login/link/used")
	for _, scheme := range []string{"light", "dark"} {
		for _, width := range []int64{1280, 390} {
			for _, path := range found {
				b.checkPage(path, scheme, width)
			}
		}
	}
	b.run(call(network.ClearBrowserCookies, cdp.Empty{}))
	for _, scheme := range []string{"light", "dark"} {
		b.checkPage("/?signed=out", scheme, 390)
	}
}

func TestPageFollowsARunningAttempt(t *testing.T) {
	s := open(t)
	s.run()
	b := browse(t, s)
	b.run(chromedp.EmulateViewport(1280, 900), chromedp.Navigate(s.url+s.thread(s.running)))
	// The live lines are visible without scrolling, also on a phone.
	for _, width := range []int64{390, 1280} {
		b.run(chromedp.EmulateViewport(width, 844))
		if got := b.eval(`(() => { const log = document.querySelector(".live .log").getBoundingClientRect(); return log.top >= 0 && log.top < innerHeight - 100 })()`); got != "true" {
			t.Errorf("at %d px the live log is not visible", width)
		}
	}
	b.eval(`document.querySelector(".timeline details summary").click()`)
	const positions = `JSON.stringify([...document.querySelectorAll("main > *:not([data-changed]), .live > *, .timeline > li, details")].map(e => [e.tagName, e.getBoundingClientRect().top, e.open]))`
	top := b.eval(positions)
	last := `document.querySelector(".log").lastElementChild.textContent`
	if got := b.eval(last); !strings.HasPrefix(got, "awk reads the file once") {
		t.Fatalf("the log ends with %q", got)
	}
	elapsed := b.eval(`document.querySelector("[data-elapsed]").textContent`)
	b.await("the time", `document.querySelector("[data-elapsed]").textContent !== "`+elapsed+`"`)
	// New lines do not scroll the log while a user reads earlier lines.
	b.eval(`document.querySelector(".log").scrollTop = 0`)
	b.await("earlier lines", `document.querySelector(".log").childElementCount > 350`)
	b.await("the scroll to end", `document.querySelector(".log").scrollTop > 0`)
	at := `document.elementFromPoint(document.querySelector(".log").getBoundingClientRect().x + 20, document.querySelector(".log").getBoundingClientRect().y + 20).textContent`
	before := b.eval(at)
	s.touch("more")
	b.await("the line below", last+` === "it is faster now"`)
	if got := b.eval(`document.querySelector("[data-call]").textContent`); got != "Bash go test ./..." {
		t.Errorf("the last call is %q", got)
	}
	if got := b.eval(at); got != before {
		t.Errorf("the visible line was %q and is now %q", before, got)
	}
	_, err := s.World.Comment(repo, s.running, rig.Writer, "/pawl stop")
	s.must(err)
	b.await("the notice", `!document.querySelector("[data-changed]").hidden`)
	b.await("the end", `document.querySelector(".live h2").textContent === "The attempt has ended"`)
	if got := b.eval(at); got != before {
		t.Errorf("the visible line was %q before the attempt's end and is now %q", before, got)
	}
	if now := b.eval(positions); now != top {
		t.Errorf("elements moved or closed while the user read:\n%s\n%s", top, now)
	}
}

func TestPagesWorkWithoutScriptsAndByKeyboard(t *testing.T) {
	s := open(t)
	s.run()
	b := browse(t, s)
	page := s.url + s.thread(s.running)
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true}), chromedp.Navigate(page))
	if got := b.eval(`document.querySelector(".log").lastElementChild.textContent`); !strings.HasPrefix(got, "awk reads the file once") {
		t.Errorf("without scripts the log ends with %q", got)
	}
	b.run(call(emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: false}), chromedp.Navigate(s.url+"/"), chromedp.KeyEvent("\t"))
	if got := b.eval(`document.activeElement.textContent`); got != "Skip to the content" {
		t.Errorf("the first element in the tab order is %q", got)
	}
	b.run(chromedp.Navigate(page))
	if why := b.eval(`[...document.querySelectorAll(".commands form")].find(f => f.textContent.includes("Retry")).textContent`); !strings.Contains(why, "Not now: an attempt is running; stop it first.") {
		t.Errorf("the disabled button shows %q", why)
	}
	for range 40 {
		if b.eval(`document.activeElement.textContent`) == "Stop" {
			break
		}
		b.run(chromedp.KeyEvent("\t"))
	}
	b.run(chromedp.KeyEvent("\r"))
	b.await("the command in the log", `document.body !== null && document.body.textContent.includes("an operator at the server asked to stop")`)
}
