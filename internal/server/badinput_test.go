package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestMissingAgentIsAMisconfiguration(t *testing.T) {
	t.Parallel()
	for _, mode := range []string{"none", "auto"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			gone := filepath.Join(r.Dir, "my-agent")
			r.Must(os.WriteFile(gone, []byte("#!/bin/sh\n"), 0o700))
			r.Config = "sandbox: {mode: " + mode + "}\nbackends:\n  - {name: mine, kind: command, argv: [" + gone + "]}\n"
			r.Start()
			r.Must(os.Remove(gone)) // otherwise the server would not start
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			if s.State != "stopped" || s.Rule != "misconfigured" || !strings.Contains(s.Reasons[0], gone) || s.Attempts != 1 {
				t.Errorf("%s (%s %q) after %d attempts; want stopped by misconfigured with the program's name after 1", s.State, s.Rule, s.Reasons, s.Attempts)
			}
		})
	}
}

func TestEmptyRepositoryIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Must(r.World.AddRepo(t.Context(), "acme/empty", nil))
	r.Must(r.World.AddUser("eve", 1003, map[string]string{"acme/empty": "write"}))
	r.Agent("exit 0\n", "")
	r.Start()
	n, err := r.World.OpenIssue("acme/empty", "eve", "Begin", "Please add a file.")
	r.Must(err)
	_, err = r.World.Comment("acme/empty", n, "eve", "/pawl solve")
	r.Must(err)
	s := r.Over(fmt.Sprintf("acme/empty#%d", n))
	r.Settle()
	if s.Rule != "empty_repository" || r.Calls() != 0 {
		t.Errorf("%s (%s %q) after %d calls; want empty_repository and none", s.State, s.Rule, s.Reasons, r.Calls())
	}
	if c := r.World.Comments("acme/empty", n); !strings.Contains(c[len(c)-1].Body, "no commits") {
		t.Errorf("the status comment does not say why: %+v", c)
	}
}

func TestEmptyIssueIsReported(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("Something", "")
	s := r.Ending(n)
	if s.Rule != "empty_task" || r.Calls() != 0 {
		t.Errorf("%s (%s %q) after %d calls; want empty_task and none", s.State, s.Rule, s.Reasons, r.Calls())
	}
	_, err := r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl solve add a line to a.txt")
	r.Must(err)
	if s := r.Ending(n); s.State != "done" || r.Calls() != 1 {
		t.Errorf("once asked for something: %s (%s %q) after %d calls; want done after 1", s.State, s.Rule, s.Reasons, r.Calls())
	}
}

func TestRepositoryConfigurationErrorIsShownAtItsLine(t *testing.T) {
	t.Parallel()
	r := newRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify:\n  - true\nbackend: [mine]\n"})
	r.Agent("echo two >> a.txt\n", "")
	r.Start()
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if r.Calls() != 0 || s.Rule != "config_error" {
		t.Errorf("%d calls, then %s (%s %q); want none and config_error", r.Calls(), s.State, s.Rule, s.Reasons)
	}
	c := r.Check(r.World.Branches(testrig.Repo)["main"], "pawl")
	if c.Conclusion == "success" || c.Conclusion == "" || !strings.Contains(c.Summary, ".github/pawl.yml:3") || !strings.Contains(c.Summary, "backend") {
		t.Errorf("check run pawl on main: %q %q\n%s\nwant a failure that names the file, line 3 and the key", c.Conclusion, c.Title, c.Summary)
	}
	_, err := r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "Correct it",
		Files: map[string]string{".github/pawl.yml": "verify:\n  - \"true\"\n"}})
	r.Must(err)
	_, err = r.World.Comment(testrig.Repo, n, testrig.Writer, "/pawl retry")
	r.Must(err)
	if s := r.Ending(n); s.State != "done" || r.Calls() != 1 {
		t.Errorf("once corrected: %s (%s %q) after %d calls; want done after 1", s.State, s.Rule, s.Reasons, r.Calls())
	}
}

func TestRefusedWritesEndTheRun(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, route, rule string
		calls             int
	}{
		{"check runs", "POST /repos/{owner}/{repo}/check-runs", "done", 1},
		{"comments", "POST /repos/{owner}/{repo}/issues/{number}/comments", "done", 1},
		{"pull requests", "POST /repos/{owner}/{repo}/pulls", "pawl_failed", 1},
		{"pushes", "POST /{owner}/{repo}.git/git-receive-pack", "pawl_failed", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := newRig(t, nil)
			r.World.Inject(fakegithub.Fault{Route: c.route, Status: 403, Message: "Resource not accessible by integration", Times: -1})
			r.Agent("echo two >> a.txt\n", "")
			r.Start()
			n := r.Solve("A second line", "Please add a second line to a.txt.")
			s := r.Ending(n)
			if string(s.Rule) != c.rule || r.Calls() != c.calls {
				t.Errorf("%s (%s %q) after %d calls; want %s after %d", s.State, s.Rule, s.Reasons, r.Calls(), c.rule, c.calls)
			}
			if asked := len(r.World.Requests()); asked > 40 {
				t.Errorf("%d requests for one run", asked)
			}
		})
	}
}
