package attempt

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// appends is a store that counts the appended batches.
type appends struct {
	thread.Store
	n int
}

func (s *appends) Events(context.Context, thread.ID, int64) ([]thread.Event, error) { return nil, nil }

func (s *appends) AppendLeased(ctx context.Context, _ thread.Lease, _ thread.Batch) error {
	if ctx.Err() == nil {
		s.n++
	}
	return ctx.Err()
}

func TestPostingAgentDoesNotFillTheLog(t *testing.T) {
	at, s := time.Date(2026, 11, 23, 0, 0, 0, 0, time.UTC), &appends{}
	a := &Attempt{Env: &Env{Store: s, Now: func() time.Time { return at }, Log: zerolog.Nop()}, Lease: &lease.Holder{}}
	for n := range 2 * maxAtOnce {
		a.authored(t.Context(), fmt.Sprintf("gh issue comment 7 --body w%d", n), true)
	}
	if s.n != maxAtOnce {
		t.Errorf("%d events, want %d", s.n, maxAtOnce)
	}
	at = at.Add(logInterval)
	if a.authored(t.Context(), "gh issue comment 7 --body last", true); s.n != maxAtOnce+1 || len(a.wrote.Fresh()) != 0 {
		t.Errorf("%d events and %d unlogged bytes after the interval, want one more and none", s.n, len(a.wrote.Fresh()))
	}
}

func TestLastPlainOutputIsLogged(t *testing.T) {
	dir, s, none := t.TempDir(), &appends{}, func(string) (string, bool) { return "", false }
	box, err := sandbox.New(t.Context(), sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := clis.ForStream(config.Plain)
	if err != nil {
		t.Fatal(err)
	}
	server := config.Server{DataDir: dir}
	a := &Attempt{
		Env: &Env{Config: server, Store: s, Sandbox: box, Now: time.Now, Log: zerolog.Nop(), Lookup: none}, Config: &server, Lease: &lease.Holder{},
		Thread: thread.ID{Owner: "acme", Name: "widgets", Number: 7}, Started: thread.Started{N: 1, Backend: "mine"},
		Ground: &Ground{Effective: config.Effective{Backends: []config.Backend{{Name: "mine", Argv: []string{"printf", "gh issue comment 7 --body end"}}}}},
	}
	a.Receipt.Transcript = filepath.Join(dir, "transcript")
	c := &checkout{Attempt: a, adapter: plain, ws: &git.Workspace{Dir: dir}, monitor: &loopMonitor{circles: policy.NewCircles()}}
	if err := os.MkdirAll(a.Env.homeOf(a.Thread), 0o700); err != nil {
		t.Fatal(err)
	}
	run, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	report, cause, err := c.runIn(run, cancel)
	if err != nil || cause != nil || report.Ending != policy.Completed {
		t.Fatalf("%+v, %v, %v", report, cause, err)
	}
	if s.n == 0 || len(a.wrote.Fresh()) != 0 {
		t.Errorf("%d events and %d unlogged bytes, want some and none", s.n, len(a.wrote.Fresh()))
	}
}

func TestEditIsNotAPost(t *testing.T) {
	imports := agent.Event{Ran: true, Authored: `Write {"content": "import \"github.com/acme/widgets\" // done"}`}
	if !executed(imports) {
		t.Error("a command does not count as executed")
	}
	imports.Edits = []policy.Edit{{Path: "a.go"}}
	var wrote feedback.Authored
	if wrote.Add(imports.Authored, executed(imports)) || wrote.Wrote("Done!") || !wrote.Wrote("github.com/acme/widgets") {
		t.Error("want an edit's long runs of words, and no run that matches a remark of one word")
	}
}

func TestPlainLinesAreTheAgentsOwn(t *testing.T) {
	for name, reader := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
		var wrote feedback.Authored
		w := plainTexts{authored: func(text string, ran bool) { wrote.Add(text, ran) }}
		out := "starting\nposting: I fixed the parser.\n\n\nIt has tests now.\nposted a comment\n" + strings.Repeat("x", 2*maxPlainText) + "\nand a comment: the end"
		if _, err := io.Copy(&w, reader(strings.NewReader(out))); err != nil {
			t.Fatal(err)
		}
		if wrote.Wrote("the end") {
			t.Errorf("%s: a line counts before its end", name)
		}
		w.end()
		for remark, want := range map[string]bool{
			"I fixed the parser.\n\nIt has tests now.": true,
			"I fixed the parser. It has no tests now.": false,
			"posted a comment":                         true,
			"starting":                                 false,
			"the end":                                  true,
		} {
			if got := wrote.Wrote(remark); got != want {
				t.Errorf("%s: %q: %v", name, remark, got)
			}
		}
	}
}

func TestBlankPlainOutputIsDropped(t *testing.T) {
	w := plainTexts{authored: func(text string, _ bool) { t.Errorf("%q was authored", text) }}
	for _, blank := range []string{" \n", "\r\n\n", strings.Repeat(" ", 4096)} {
		for range 100 {
			if _, err := w.Write([]byte(blank)); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.text) > 2*maxPlainText || strings.HasSuffix(blank, "\n") && len(w.text) > 0 {
			t.Errorf("%.10q: %d bytes are buffered", blank, len(w.text))
		}
	}
}
