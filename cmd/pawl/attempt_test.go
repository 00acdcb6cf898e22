package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

func TestSecretsAreNotPushedAndAreReported(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, map[string]string{"a.txt": "one\n", ".github/pawl.yml": "verify: ['true']\n"})
	key := "AKIA" + strings.Repeat("Q", 16)
	r.Agent(testrig.Saying(t, "echo two >> a.txt; mkdir -p 'd é'; printf 'x\\ny\\nid = AKIA%s\\n' QQQQQQQQQQQQQQQQ > 'd é/b.txt'\n"+
		"printf '\\000\\n-----BEGIN PRIVATE %s-----\\nMIIE\\n' KEY > c.bin; printf '%s' \"$AGENT_VALUE\" | base64 > d.txt; echo x > glpat-$(printf 'a%.0s' $(seq 20))",
		"TITLE: fix: "+key+" is the key\nIt is "+key+"."), "stream: codex, env: [AGENT_VALUE]")
	r.StartProgram("AGENT_VALUE=a value that only agents get")
	n := r.Solve("A second line", "Please add a second line to a.txt.")
	s := r.Ending(n)
	if s.State != "stopped" || s.Rule != "secret" || len(r.World.Pushes(testrig.Repo)) != 0 {
		t.Fatalf("%s (%s %q) after the pushes %v; want the rule secret and no push", s.State, s.Rule, s.Reasons, r.World.Pushes(testrig.Repo))
	}
	comment := r.World.Comments(testrig.Repo, n)[1].Body
	for _, want := range []string{
		"the work holds what looks like a secret", "line 3 of d é/b.txt looks like an AWS access key", "line 2 of c.bin looks like a private key",
		"line 1 of d.txt looks like a value that Pawl gave", "the name of a file looks like a GitLab token", "allow_secrets",
	} {
		if !strings.Contains(strings.ReplaceAll(comment, "`", ""), want) {
			t.Errorf("the status comment does not contain %q:\n%s", want, comment)
		}
	}
	all := r.World.Comments(testrig.Repo, n)
	state, err := json.Marshal(r.State(n).Attempts[0].Receipt)
	r.Must(err)
	for _, text := range []string{fmt.Sprint(all), string(state)} {
		if strings.Contains(text, key) || strings.Contains(text, "glpat-aaa") {
			t.Errorf("a secret is shown: %s", text)
		}
	}
	var allowed []string
	for _, l := range r.State(n).Attempts[0].Receipt.Leaks {
		allowed = append(allowed, "'"+l.Fingerprint+"'")
	}
	_, err = r.World.PushCommit(t.Context(), testrig.Repo, testrig.Writer, fakegithub.Commit{Branch: "main", Message: "Allow", Files: map[string]string{".github/pawl.yml": "verify: ['true']\nallow_secrets: [" + strings.Join(allowed, ", ") + "]\n"}})
	r.Must(err)
	r.Must(os.Remove(filepath.Join(r.Ctrl(), "calls"))) // so that the agent does the same again
	r.Writes(n, testrig.Writer, "/pawl retry")
	r.Await("the retry", func() bool { return len(r.State(n).Attempts) == 2 })
	if s := r.Ending(n); s.State != "done" {
		t.Fatalf("%s (%s %q), want done, because the values are allowed", s.State, s.Rule, s.Reasons)
	}
	subject, err := r.World.Git(t.Context(), testrig.Repo, "log", "-1", "--format=%B", fmt.Sprintf("pawl/issue-%d", n))
	r.Must(err)
	if strings.Contains(subject, key) {
		t.Errorf("the commit message contains the key: %q", subject)
	}
}
