package testrig

import (
	"os"
	"path/filepath"
	"strings"
)

// Steerable is CutOff, except that a call n that runs until killed also makes tool calls. Its first tool call ends once
// the test touches call-n.
func (r *Rig) Steerable(times int) {
	r.T.Helper()
	r.CutOff(times)
	path := filepath.Join(r.Dir, "agent.sh")
	script, err := os.ReadFile(path)
	r.Must(err)
	const calls = `began() { echo '{"type":"item.started","item":{"id":"call'$1'","type":"command_execution","command":"make '$1'"}}'; }
ended() { echo '{"type":"item.completed","item":{"id":"call'$1'","type":"command_execution","command":"make '$1'","exit_code":0,"status":"completed"}}'; }
began 0; touch "$CTRL/ready-$n"; while [ ! -e "$CTRL/call-$n" ]; do sleep 0.02; done; ended 0
i=0; while true; do i=$((i+1)); began $i; sleep 0.1; ended $i; done`
	r.Must(os.WriteFile(path, []byte(strings.Replace(string(script), `touch "$CTRL/ready-$n"; exec sleep 600`, calls, 1)), 0o700))
}
