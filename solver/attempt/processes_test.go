package attempt

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// What one attempt may cost, from the fetch to the push: processes of git that Pawl itself starts, and those among them
// that talk to the git server. An attempt waits for each of them.
const (
	mostProcesses     = 24 // and one for the version, when the server starts
	mostConversations = 3  // the fetch, the question for the default branch, the push
)

func TestAnAttemptStartsFewGitProcesses(t *testing.T) {
	commands := recordGit(t)
	dir := t.TempDir()
	origin := filepath.Join(dir, "origin")
	for name, content := range map[string]string{"a.txt": "one\n", "check.sh": "test -s a.txt\n", ".github/pawl.yml": "verify: [sh check.sh]\n"} {
		writeFile(t, filepath.Join(origin, name), content)
	}
	for _, args := range [][]string{
		{"init", "--quiet", "--initial-branch=main"},
		{"add", "--all"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "--quiet", "--message=first"},
	} {
		if out, err := exec.Command("git", append([]string{"-C", origin}, args...)...).CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	text := "data_dir: " + filepath.Join(dir, "data") + "\nsandbox: {mode: none}\nbackends:\n- {name: mine, kind: command, argv: [sh, -c, echo two >> a.txt]}\n"
	server, err := config.Parse("pawl.yml", []byte(text), os.LookupEnv, false)
	if err != nil {
		t.Fatal(err)
	}
	box, err := sandbox.New(t.Context(), sandbox.None)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(dir, "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	env := &Env{
		Store: db, Config: server, Sandbox: box, Node: "node", Place: "here", Now: time.Now, Log: zerolog.Nop(),
		Lookup: os.LookupEnv, Stopping: make(chan struct{}),
	}
	env.UseLayers(LayersIn(server.DataDir))
	id := thread.ID{Owner: "acme", Name: "widgets", Number: 1}
	held, err := db.Acquire(t.Context(), id, env.Node)
	if err != nil {
		t.Fatal(err)
	}
	ctx, holder := lease.Hold(t.Context(), db, held, time.Now(), time.Now)
	defer holder.Release(nil)

	commands() // what it took to get here
	for n, name := range []string{"the first attempt", "an attempt on a branch that exists"} {
		g := &Ground{
			Lease: holder, Log: env.Log, Branch: "pawl/issue-1",
			Remote: func(context.Context, bool) (git.Remote, error) { return git.Remote{URL: origin}, nil },
		}
		refused, err := g.Fetch(ctx, env, &server, id, thread.Details{DefaultBranch: "main"}, nil)
		if err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		started := thread.Started{N: n + 1, Run: 1, Backend: "mine", Kind: "command", Base: g.Start, Decision: policy.Decision{Purpose: policy.ToChange}}
		a := &Attempt{
			Env: env, Config: &server, Started: started, Thread: id, Lease: holder, Log: env.Log, Ground: g, Author: "pawl", Email: "pawl@localhost",
			Release: func() {}, Attend: func(context.Context) {}, Allowed: func(context.Context) error { return nil },
		}
		refused, err = a.VerifyBase(ctx)
		if err != nil || refused != nil {
			t.Fatal(refused, err)
		}
		if err := a.Run(ctx, NewCheckout(a)); err != nil {
			t.Fatal(err)
		}
		if !a.Receipt.Pushed || len(a.Receipt.Verify) != 1 || !a.Receipt.Verify[0].Passed {
			t.Fatalf("%s: %+v, want it verified and pushed", name, a.Receipt)
		}
		all := commands()
		var asks []string
		for _, command := range all {
			if strings.Contains(command, origin) {
				asks = append(asks, command)
			}
		}
		if len(all) > mostProcesses {
			t.Errorf("%s starts %d git processes, want at most %d:\n%s", name, len(all), mostProcesses, strings.Join(all, "\n"))
		}
		if len(asks) > mostConversations {
			t.Errorf("%s asks the git server %d times, want at most %d:\n%s", name, len(asks), mostConversations, strings.Join(asks, "\n"))
		}
	}
}

// recordGit has every git that is found in the PATH write its arguments down first. The result is what was written since
// it was last called. What git itself starts is not found in the PATH.
func recordGit(t *testing.T) func() []string {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> '%s'\nexec '%s' \"$@\"\n", log, program)
	writeFile(t, filepath.Join(dir, "git"), script)
	if err := os.Chmod(filepath.Join(dir, "git"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return func() []string {
		text, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(log); err != nil {
			t.Fatal(err)
		}
		return strings.Split(strings.TrimSpace(string(text)), "\n")
	}
}

func writeFile(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}
