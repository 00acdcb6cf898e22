package attempt

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// These limit the git processes of one attempt, from the fetch to the push, and those that talk to the git server. The
// attempt waits for each of them.
const (
	mostProcesses     = 26 // plus one for the version when the server starts
	mostConversations = 4  // the fetch, the fetch of tags every ten minutes, the request for the default branch, the push
)

func TestAttemptStartsFewGitProcesses(t *testing.T) {
	commands := recordGit(t)
	s := newStage(t, map[string]string{"a.txt": "one\n", "check.sh": "test -s a.txt\n", ".github/pawl.yml": "verify: [sh check.sh]\n"})
	s.agent("echo two >> a.txt\n", "")

	s.hold(1)
	commands() // drop the processes so far
	for _, name := range []string{"the first attempt", "an attempt on a branch that exists"} {
		if r := s.attempt(1); !r.Pushed || len(r.Verify) != 1 || !r.Verify[0].Passed {
			t.Fatalf("%s: %+v, want it verified and pushed", name, r)
		}
		all := commands()
		var asks []string
		for _, command := range all {
			if strings.Contains(command, s.origin) {
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

// recordGit makes each git in the PATH record its arguments. The returned function returns the records since its last
// call. Processes that git itself starts are not recorded.
func recordGit(t *testing.T) func() []string {
	t.Helper()
	program, err := exec.LookPath("git")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	script := fmt.Sprintf("#!/bin/sh\necho \"$*\" >> '%s'\nexec '%s' \"$@\"\n", log, program)
	if err := os.WriteFile(filepath.Join(dir, "git"), []byte(script), 0o755); err != nil {
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
