//go:build eval

package pages

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
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	render "github.com/yuin/goldmark/renderer/html"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/fakegithub"
)

var pictures = flag.String("pictures", "", "the folder that TestPictures writes to")

// camera is a browser that takes pictures.
type camera struct {
	*browser
	dir string
}

// take saves a picture of the top of a page.
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

// github takes a picture of Markdown text in a style like GitHub's.
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
@media (prefers-color-scheme: dark) {
body, a { color: #f0f6fc; background: #0d1117; } a { color: #4493f8; } header, tr:nth-child(2n), code, pre { background: #151b23; }
header, th, td, h2, h3 { border-color: #3d444d; } header span, blockquote { color: #9198a1; }
}
</style><header>`+html.EscapeString(title)+` <span>`+html.EscapeString(badge)+`</span></header>`+body.String()), 0o600); err != nil {
		c.t.Fatal(err)
	}
	for _, scheme := range []string{"dark", "light"} { // the pictures for README and docs are light
		for _, width := range []int64{390, 900} {
			c.visit("file://"+file, scheme, width)
			c.shoot(name, scheme, width)
		}
	}
	c.take(name, "file://"+file, 900, height)
}

// TestPictures takes the pictures for README and docs: pages, a check run and a comment.
func TestPictures(t *testing.T) {
	if *pictures == "" {
		t.Fatal("name the folder with -pictures, as make pictures does")
	}
	if _, err := exec.LookPath("chromium"); err != nil {
		t.Fatal("there is no chromium; .ci/setup installs it")
	}
	s := open(t)
	s.work()
	b := browse(t, s)
	c := &camera{browser: b, dir: *pictures}
	c.take("threads", s.url+"/", 1100, 680)
	c.take("running", s.url+s.thread(s.running), 1100, 760)
	c.take("thread", s.url+s.thread(s.solved), 1100, 1340)
	c.take("costs", s.url+"/costs", 1100, 560)
	for name, n := range map[string]int{"check-run": s.solved, "check-run-stopped": s.stuck} {
		run := s.check(n)
		buttons := ""
		for _, a := range run.Actions {
			buttons += " · [" + a.Label + "]"
		}
		c.github(name, run.Title, "check run "+run.Name+", "+run.Conclusion+buttons, run.Summary+"\n\n"+run.Text, 640)
	}
	c.github("comment", "pawl", "commented", s.statusComment(s.solved), 420)
}

// statusComment returns Pawl's status comment on an issue.
func (s *site) statusComment(n int) string {
	marker := checkrun.StatusMarker(fmt.Sprintf("%s#%d", repo, n))
	for _, c := range s.World.Comments(repo, n) {
		if strings.Contains(c.Body, marker) {
			return strings.TrimSpace(c.Body)
		}
	}
	s.t.Errorf("#%d has no status comment", n)
	return ""
}

// check returns the check run named pawl on the pull request.
func (s *site) check(n int) fakegithub.CheckRun {
	for _, p := range s.World.Pulls(repo) {
		if p.Pull.Head != fmt.Sprintf("pawl/issue-%d", n) {
			continue
		}
		for _, c := range s.World.CheckRuns(repo) {
			if c.SHA == p.Pull.HeadSHA && c.Name == "pawl" && c.App == "pawl" {
				return c
			}
		}
	}
	return fakegithub.CheckRun{}
}
