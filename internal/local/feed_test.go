package local

import (
	"io/fs"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/agenttest"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// The runs were recorded from the real CLIs.
func TestFeedShowsMessagesAndCallsOfEachCLI(t *testing.T) {
	t.Parallel()
	const (
		create = "  I will create the file.\n  edits hello.txt\n  Done. I created hello.txt with one line of text."
		script = `$ printf "made by shell\n" > shell.txt && git status --short`
		shell  = "  " + script + "\n  Done. I created shell.txt with a shell command."
		fails  = "  $ echo about to fail; echo oops >&2; exit 3\n  The command failed with exit code 3. I stopped there and changed nothing."
		tests  = " unit\n  The test run tool answered; I am finished."
	)
	for kind, runs := range agenttest.EveryCLI(t, map[string]map[string]string{
		"claude": {
			"edit-success":  create,
			"tool-fail":     fails,
			"mcp-nobypass":  "  mcp__ci__run_tests" + tests,
			"transient-429": "  ! API retry 1 of 10: rate_limit (HTTP status 429)\n  ! API retry 2 of 10: rate_limit (HTTP status 429)\n" + create,
		},
		"codex": {
			"edit-success": create,
			"shell-edit":   strings.Replace(shell, script, `$ /bin/bash -lc "printf \"made by shell\\n\" > shell.txt && git status --short"`, 1),
			"mcp":          "  ci run_tests" + tests,
		},
		"gemini":   {"edit-success": create, "shell-edit": shell},
		"opencode": {"edit-success": create, "shell-edit": shell},
		"qwen":     {"edit-success": create, "tool-fail": fails},
	}) {
		adapter, err := clis.For(kind, "")
		if err != nil {
			t.Fatal(err)
		}
		for run, want := range runs {
			output, err := fs.ReadFile(agenttest.Files(t, filepath.Join("../../testdata/agents", kind, run)), "stdout.jsonl")
			if err != nil {
				t.Fatal(err)
			}
			f, shown := newFeed()
			for line := range strings.Lines(string(output)) {
				adapter.Parse([]byte(line), f.Event)
			}
			got := strings.ReplaceAll(strings.Join(*shown, "\n"), "/agent/"+kind+"-"+run+"/repo/", "")
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("%s %s: %s", kind, run, d)
			}
		}
	}
}

func newFeed() (*Feed, *[]string) {
	var shown []string
	f := &Feed{Print: func(line string) { shown = append(shown, line) }}
	f.Begin(thread.Started{N: 1, Backend: "mine"})
	shown = nil
	return f, &shown
}

func TestFeedShowsEachEventOnceWithoutControlCharacters(t *testing.T) {
	t.Parallel()
	say := func(text string) agent.Event { return agent.Event{Kind: agent.Message, Text: text} }
	piece := func(text string) agent.Event { return agent.Event{Kind: agent.Message, Text: text, Delta: true} }
	call := func(id, does string, done bool) agent.Event {
		return agent.Event{Kind: agent.ToolCall, ID: id, Does: does, Done: done}
	}
	edit := func(files ...string) agent.Event {
		e := agent.Event{Kind: agent.ToolCall, Does: "Write"}
		for _, file := range files {
			e.Edits = append(e.Edits, policy.Edit{Path: file})
		}
		return e
	}
	long := strings.Repeat("word ", 100)
	for name, c := range map[string]struct {
		events []agent.Event
		want   []string
	}{
		"a message of two lines":            {[]agent.Event{say("one\n\n  two\n")}, []string{"  one", "    two"}},
		"a message reported twice":          {[]agent.Event{say("one"), say("one"), say("two")}, []string{"  one", "  two"}},
		"sequences of a terminal":           {[]agent.Event{say("\x1b]0;title\x07one\x1b[2J")}, []string{"  one"}},
		"a message in pieces":               {[]agent.Event{piece("on"), piece("e\ntw"), piece("o"), {Kind: agent.Finished}}, []string{"  one", "  two"}},
		"pieces before a call":              {[]agent.Event{piece("one"), call("1", "$ ls", false)}, []string{"  one", "  $ ls"}},
		"a long line in pieces":             {[]agent.Event{piece(long)}, []string{"  " + strings.TrimSpace(long)}},
		"a call and its answer":             {[]agent.Event{call("1", "$ ls", false), call("1", "", true)}, []string{"  $ ls"}},
		"a call described at start and end": {[]agent.Event{call("1", "$ ls", false), call("1", "$ ls", true)}, []string{"  $ ls"}},
		"a call described only at its end":  {[]agent.Event{call("1", "$ ls", true)}, []string{"  $ ls"}},
		"two calls under one id":            {[]agent.Event{call("1", "$ ls", true), call("1", "$ ls", true)}, []string{"  $ ls", "  $ ls"}},
		"two calls without an id":           {[]agent.Event{call("", "$ ls", false), call("", "$ ls", false)}, []string{"  $ ls", "  $ ls"}},
		"an edit":                           {[]agent.Event{edit("a.go", "b.go", "a.go")}, []string{"  edits a.go, b.go"}},
		"an edit of many files":             {[]agent.Event{edit("1", "2", "3", "4", "5", "6", "7")}, []string{"  edits 1, 2, 3, 4, 5, 2 more files"}},
		"a command of several lines":        {[]agent.Event{call("1", "$ cat <<E\nx\nE", false)}, []string{"  $ cat <<E x E"}},
		"a notice":                          {[]agent.Event{{Kind: agent.Notice, Text: "retry"}, {Kind: agent.Notice}}, []string{"  ! retry"}},
		"events that are not shown":         {[]agent.Event{{Kind: agent.Thought, Text: "hm"}, {Kind: agent.TurnStarted}}, nil},
	} {
		f, shown := newFeed()
		for _, e := range c.events {
			f.Event(e)
		}
		if d := cmp.Diff(c.want, *shown); d != "" {
			t.Errorf("%s: %s", name, d)
		}
		f, shown = newFeed()
		f.Quiet = true
		for _, e := range c.events {
			f.Event(e)
		}
		if len(*shown) > 0 {
			t.Errorf("%s: quiet, but shown: %q", name, *shown)
		}
	}
}

func TestFeedShowsAttemptsAndWaits(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 4, 14, 3, 0, 0, time.UTC)
	f, shown := newFeed()
	f.Quiet = true
	f.Begin(thread.Started{N: 1, Backend: "mine"})
	f.Prepare("verifying the change: make")
	f.Prepare("")
	f.End(policy.Receipt{N: 1, Ending: policy.Killed, Outcome: policy.WasKilled, Reasons: []string{"killed by SIGKILL"}})
	f.Wait(checkrun.View{State: checkrun.Waiting, Now: now, Decided: thread.Decided{Decision: policy.Decision{
		Rule: policy.RuleUsageLimit, Until: now.Add(12 * time.Minute), Reasons: policy.Reasons{{Text: "the account is at its limit"}},
	}}})
	f.Begin(thread.Started{N: 2, Backend: "mine", Decision: policy.Decision{Reasons: policy.Reasons{{Text: "the limit was reset"}}}})
	f.End(policy.Receipt{N: 2, Ending: policy.Completed, Outcome: policy.WorkVerified, Reasons: []string{"exit code 0"}})
	want := []string{
		"Attempt 1 on mine", "verifying the change: make", "Attempt 1 ended: killed", "  killed by SIGKILL",
		"Waiting: usage limit, 12m left (until 14:15 UTC)", "  the account is at its limit",
		"Attempt 2 on mine: the limit was reset", "Attempt 2 ended: verified",
	}
	if d := cmp.Diff(want, *shown); d != "" {
		t.Error(d)
	}
}
