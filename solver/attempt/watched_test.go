package attempt

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// codex begins and codexEnds ends a script that prints Codex's stream. "change PATH" reports a changed file without its
// content, as Codex does. pace is the seconds between two events.
const (
	codex = `n=0 pace=0.01
change() { n=$((n+1)); printf '{"type":"item.completed","item":{"id":"i%d","type":"file_change","changes":[{"path":"%s/%s","kind":"update"}],"status":"completed"}}\n' $n "$PWD" "$1"; sleep $pace; }
command() { n=$((n+1)); printf '{"type":"item.completed","item":{"id":"i%d","type":"command_execution","command":"%s","aggregated_output":"","exit_code":0,"status":"completed"}}\n' $n "$1"; sleep $pace; }
printf '{"type":"thread.started","thread_id":"0199"}\n{"type":"turn.started"}\n'
echo kept > work.txt
`
	codexEnds = `printf '{"type":"item.completed","item":{"id":"m","type":"agent_message","text":"Done."}}\n{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}\n'
`
)

// Tests in policy and of streams classify edits. This test covers edits that only the files show.
func TestLoopMonitorReadsNamedFiles(t *testing.T) {
	t.Parallel()
	const fiveFiles = `for i in $(seq 1 %d); do for f in 1 2 3 4 5; do echo "value: $((i%%2))" > f$f.txt; change f$f.txt; done; done`
	// A slow pace: Pawl must see the file between two commands, also on a busy machine.
	for _, c := range []struct {
		name, verify, work string
		ending             policy.Ending
		class              policy.Class
	}{
		{"sed -i back and forth", "", `pace=0.1; [ -s f.txt ] || echo 'value: 9' > f.txt; for i in $(seq 1 300); do sed -i "s/.*/value: $((i%2))/" f.txt; command 'sed -i s/value/x/ f.txt'; done`, policy.Killed, policy.Severe},
		{"through the shell", "", `pace=0.1; for i in $(seq 1 300); do echo "value: $((i%2))" > f.txt; command 'echo value > f.txt'; done`, policy.Killed, policy.Severe},
		{"a loop whose work fails", "false", fmt.Sprintf(fiveFiles, 13), policy.Completed, policy.Moderate},
		{"a loop whose work is verified", "true", fmt.Sprintf(fiveFiles, 13), policy.Completed, policy.None},
		{"steady work on one file", "", "for i in $(seq 1 60); do echo line $i >> f.txt; change f.txt; done", policy.Completed, policy.None},
		{"a formatter after each edit", "", `for i in $(seq 1 45); do printf '\tline %d\n' $i >> f.txt; change f.txt; sed 's/\t/  /' f.txt > neat; cat neat > f.txt; command 'tidy -w f.txt'; done; rm neat`, policy.Completed, policy.None},
		{"a debug print in and out five times", "", `for i in 1 2 3 4 5; do printf 'start\ndump(%d)\n' $i > f.txt; change f.txt; echo start > f.txt; change f.txt; done`, policy.Completed, policy.None},
		{"counts where nothing else is known", "", `for i in $(seq 1 8); do change hot.go; done; for i in $(seq 1 33); do change other$i.go; done`, policy.Completed, policy.Mild},
		{"the same call with the same result", "", `for i in $(seq 1 60); do command 'gh run view'; done`, policy.SelfLoop, policy.None},
		{"an edit after each command", "", `for i in $(seq 1 60); do echo $i >> f.txt; change f.txt; command 'go build ./...'; done`, policy.Completed, policy.None},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := map[string]string{"a.txt": "one\n"}
			if c.verify != "" {
				files[config.RepoFile] = "verify: ['test ! -e work.txt || " + c.verify + "']\n"
			}
			s := newStage(t, files)
			s.agent(codex+c.work+"\n"+codexEnds, ", stream: codex")
			r := s.attempt(1)
			if got := policy.Defaults().Severity.Loop(r).Class; r.Ending != c.ending || got != c.class {
				t.Errorf("ended %s, a loop of class %q: %+v; want %s, %q", r.Ending, got, r.Edits, c.ending, c.class)
			}
			branch := branchOf(1)
			if c.ending == policy.Killed {
				branch = "pawl/kept-1-1"
			}
			if got := s.git("show", branch+":work.txt"); got != "kept\n" {
				t.Errorf("work.txt on %s is %q", branch, got)
			}
		})
	}
}

func TestSamplerFollowsNoLinkAndOpensNoPipe(t *testing.T) {
	t.Parallel()
	s := newStage(t, map[string]string{"a.txt": "one\n"})
	secret := filepath.Join(s.ctrl, "secret")
	s.must(os.WriteFile(secret, []byte("secret\n"), 0o600))
	s.agent(codex+strings.ReplaceAll("ln -s SECRET link.txt; mkfifo pipe\nfor i in $(seq 1 20); do change link.txt; change pipe; change ../../../secret; done; rm pipe link.txt\n", "SECRET", secret)+codexEnds, ", stream: codex")
	if e := s.attempt(1).Edits; e.Seen != 0 || e.Operations != 60 {
		t.Errorf("%+v, want 60 edits of which nothing is known", e)
	}
}
