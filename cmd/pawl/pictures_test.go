//go:build eval

package main

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	render "github.com/yuin/goldmark/renderer/html"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

var pictures = flag.String("pictures", "", "the folder that TestPictures writes to")

// pictureAgent plays four agents, by what it is asked.
const pictureAgent = `prompt=$(cat)
says() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"text","text":"%s"}]}}\n' "$1" "$2"; }
runs() { printf '{"type":"assistant","message":{"id":"m%s","content":[{"type":"tool_use","id":"t%s","name":"Bash","input":{"command":"%s"}}]}}\n' "$1" "$1" "$2"; }
ends() { printf '{"type":"result","subtype":"success","is_error":false,"result":"%s","total_cost_usd":%s,"usage":{"input_tokens":%s,"cache_read_input_tokens":%s,"output_tokens":%s}}\n' "$1" "$2" "$3" "$4" "$5"; }
case "$prompt" in
*"negative total"*)
	says 1 "I read total.sh and its test first."
	runs 2 "sh test.sh"
	if [ ! -e "$CTRL/tried" ]; then
		touch "$CTRL/tried"
		echo "check '-150' -2" >> test.sh
		sed -i 's|int(s/100)|int(s/100+0.5)|' total.sh
		ends "Totals are rounded half up now." 0.19 21400 88000 1900
	else
		sed -i 's|int(s/100+0.5)|int(s/100+(s<0?-0.5:0.5))|' total.sh
		echo "check '-149' -1" >> test.sh
		ends "The rounding goes away from zero for negative totals as well, and a test says so." 0.27 30100 121000 2600
	fi ;;
*"empty file"*)
	grep -q nothing test.sh || echo "check '' nothing" >> test.sh
	echo "# an empty list is 0 ($(wc -l < total.sh))" >> total.sh
	ends "An empty file counts as 0 now." 0.11 12000 40000 900 ;;
*"usage text"*)
	echo '{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"You have hit your session limit · resets 5pm (UTC)"}'
	exit 1 ;;
*)
	says 1 "I measure before I change anything."
	runs 2 "for n in 1 2 3; do time sh total.sh < prices.txt; done"
	says 3 "awk reads the file once; what costs is starting it for each price."
	runs 4 "grep -rn total.sh ."
	says 5 "I put all prices into one call and run the tests."
	runs 6 "sh test.sh"
	touch "$CTRL/ready"
	while [ ! -e "$CTRL/go" ]; do sleep 0.1; done
	ends "One call of awk now." 0.05 9000 20000 400 ;;
esac
`

// camera is a browser that takes pictures.
type camera struct {
	t   *testing.T
	ctx context.Context
	dir string
}

func (c *camera) run(all ...chromedp.Action[chromedp.Void]) {
	c.t.Helper()
	for _, a := range all {
		if _, err := chromedp.Run(c.ctx, a); err != nil {
			c.t.Fatal(err)
		}
	}
}

// take keeps the first so many pixels of a page.
func (c *camera) take(name, address string, width, height int64) {
	c.t.Helper()
	c.run(chromedp.EmulateViewport(width, height), chromedp.Navigate(address), chromedp.Sleep(1500*time.Millisecond))
	var data []byte
	quality := int64(82)
	c.run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		got, err := cdp.Call(ctx, t, page.CaptureScreenshot, page.CaptureScreenshotParams{Format: page.CaptureScreenshotFormatWebp, Quality: &quality})
		if err == nil {
			data = got.Data
		}
		return err
	}))
	if err := os.WriteFile(filepath.Join(c.dir, name+".webp"), data, 0o644); err != nil {
		c.t.Fatal(err)
	}
}

// github is text in Markdown as GitHub shows it, with a style like GitHub's.
func (c *camera) github(name, title, badge, text string, height int64) {
	c.t.Helper()
	var body bytes.Buffer
	if err := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithRendererOptions(render.WithUnsafe())).Convert([]byte(text), &body); err != nil {
		c.t.Fatal(err)
	}
	file := filepath.Join(c.t.TempDir(), name+".html")
	if err := os.WriteFile(file, []byte(`<!DOCTYPE html><meta charset="utf-8"><style>
body { margin: 0; padding: 24px 32px; font: 14px/1.5 -apple-system, "Segoe UI", "Noto Sans", "DejaVu Sans", sans-serif; color: #1f2328; background: #fff; }
header { border: 1px solid #d1d9e0; border-radius: 6px; padding: 12px 16px; margin-bottom: 16px; font-weight: 600; background: #f6f8fa; }
header span { font-weight: 400; color: #59636e; }
table { border-collapse: collapse; margin: 8px 0 16px; display: block; } th, td { border: 1px solid #d1d9e0; padding: 6px 13px; } th { font-weight: 600; } tr:nth-child(2n) { background: #f6f8fa; }
code, pre { font: 12px ui-monospace, "DejaVu Sans Mono", monospace; background: #eff1f3; border-radius: 6px; padding: .2em .4em; } pre { padding: 12px; } pre code { padding: 0; }
h2, h3 { border-bottom: 1px solid #d1d9e0; padding-bottom: .3em; } a { color: #0969da; } blockquote { margin: 0; padding: 0 1em; color: #59636e; border-left: .25em solid #d1d9e0; }
</style><header>`+html.EscapeString(title)+` <span>`+html.EscapeString(badge)+`</span></header>`+body.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	c.take(name, "file://"+file, 900, height)
}

// TestPictures takes the pictures of README and docs: the built program works on four issues of the fake GitHub, and what
// stands on its pages, in a check run and in a comment then is photographed in chromium.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Skip("make pictures names the folder")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("needs chromium")
	}
	r := newRig(t, map[string]string{
		"README.md": "# widgets\n", "total.sh": "awk '{ s += $1 } END { print int(s/100) }'\n", "prices.txt": "250\n125\n",
		"test.sh":       "check() { got=$(printf '%s\\n' $1 | sh total.sh); [ \"$got\" = \"$2\" ] || { echo \"FAIL: total of $1 is $got, want $2\"; exit 1; }; echo \"ok $1\"; }\ncheck '100 100' 2\n",
		config.RepoFile: "verify: [sh test.sh]\n" + allChecks,
	})
	r.agent(pictureAgent, "stream: claude, account: main, model: opus")
	r.config += "workers: 4\npolicy: {restarts: {max: 3}}\n"
	r.start()
	stuck := r.solve("An empty file has no total", "For an empty file there should be a total of nothing instead of 0.")
	solved := r.solve("Round a negative total", "A negative total such as -150 cents is -1 instead of -2.")
	r.over(threadName(solved))
	r.over(threadName(stuck))
	limited := r.solve("The usage text is wrong", "The usage text names an option that does not exist.")
	r.await("a wait", func() bool {
		return r.thread(threadName(limited)).State != "running" && r.thread(threadName(limited)).State != ""
	})
	running := r.solve("Totals of long lists are slow", "Ten thousand prices take half a minute.")
	r.await("the agent", func() bool { return r.has("ready") })
	r.get("/") // signs in
	for _, n := range []int{stuck, solved, limited, running} {
		s := r.thread(threadName(n))
		t.Logf("#%d %s %s %q", n, s.State, s.Rule, s.Reasons)
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.UserDataDir(t.TempDir()))
	alloc, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	defer cancel()
	ctx, cancel := chromedp.NewContext(alloc)
	defer cancel()
	c := &camera{t: t, ctx: ctx, dir: *pictures}
	site := "http://" + r.pages
	c.run(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, network.SetCookie, network.SetCookieParams{Name: r.cookie.Name, Value: r.cookie.Value, URL: site + "/"})
		return err
	}))
	thread := func(n int) string { return fmt.Sprintf("%s/threads/%s/%d", site, rigRepo, n) }
	c.take("threads", site+"/", 1100, 680)
	c.take("running", thread(running), 1100, 760)
	c.take("thread", thread(solved), 1100, 1340)
	c.take("costs", site+"/costs", 1100, 560)
	for name, n := range map[string]int{"check-run": solved, "check-run-stopped": stuck} {
		var run fakegithub.CheckRun
		for _, p := range r.world.Pulls(rigRepo) {
			if p.Pull.Head == fmt.Sprintf("pawl/issue-%d", n) {
				run = r.check(p.Pull.HeadSHA, "pawl")
			}
		}
		buttons := ""
		for _, a := range run.Actions {
			buttons += " · [" + a.Label + "]"
		}
		c.github(name, run.Title, "check run "+run.Name+", "+run.Conclusion+buttons, run.Summary+"\n\n"+run.Text, 760)
	}
	c.github("comment", "pawl", "commented", strings.TrimSpace(r.statusComment(solved)), 420)
	r.touch("go")
}
