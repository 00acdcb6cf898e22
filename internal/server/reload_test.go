package server_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// edit changes the server's file as editors do: it writes a new file, then renames it.
func (r *rig) edit(oldnew ...string) {
	r.T.Helper()
	path := filepath.Join(r.Dir, "pawl.yml")
	text, err := os.ReadFile(path)
	r.Must(err)
	r.Must(os.WriteFile(path+"~", []byte(strings.NewReplacer(oldnew...).Replace(string(text))), 0o600))
	r.Must(os.Rename(path+"~", path))
}

// reloads waits for the n-th log line with a message.
func (r *rig) reloads(message string, n int) {
	r.T.Helper()
	r.Await(message, func() bool { return strings.Count(r.Log.String(), message) >= n })
}

const inForceNow, isRefused = "the new configuration is in force", "the new configuration is refused"

// A server applies changes of its file, but running attempts keep their configuration. policy.paused works as a switch.
func TestReloadWithoutRestart(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "policy: {paused: false}\nretention: {deliveries: 1000h}\n"
	first := r.AtWork()
	r.edit("paused: false", "paused: true", "name: mine", "name: other")
	r.reloads(inForceNow, 1)
	second := r.Solve("Two", "Please add a line to a.txt.")
	r.Await("the pause", func() bool {
		s := r.Thread(testrig.ThreadName(second))
		return s.Rule == policy.RulePaused && s.State == "stopped"
	})
	r.Touch("go")
	r.wantAttemptBy(first, "mine")
	if !strings.Contains(r.Log.String(), `policy.paused: \"false\" → \"true\"`) {
		t.Error("the log does not say what changed")
	}

	// The server refuses a file with an error, names the line and the fix, and changes nothing.
	r.edit("paused: true", "paused: perhaps")
	r.reloads(isRefused, 1)
	refused := r.Status().Servers[0].Refused
	if !strings.Contains(refused, "pawl.yml:9:") || !strings.Contains(refused, "write true or false") {
		t.Errorf("refused for %q, want the line and the fix", refused)
	}
	third := r.Solve("Three", "Please add a line to a.txt.")
	r.Await("the pause to remain", func() bool { return r.Thread(testrig.ThreadName(third)).Rule == policy.RulePaused })

	// Threads that the pause stopped continue without a command.
	db := r.Database()
	for guid, hours := range map[string]int{"old": 999, "young": 1} { // without the recent delivery, the clock would seem wrong
		_, err := db.ExecContext(t.Context(), `INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at)
			VALUES (?, 'ping', x'7b7d', ?, 'handled', '', 1, 0)`, guid, time.Now().Add(-time.Duration(hours)*time.Hour).UnixMicro())
		r.Must(err)
	}
	r.edit("paused: perhaps", "paused: false", "drain: 0s", "drain: 1s", "deliveries: 1000h", "deliveries: 998h")
	r.reloads(inForceNow, 2)
	for _, n := range []int{second, third} {
		r.Await("the paused thread to continue", func() bool { return r.Thread(testrig.ThreadName(n)).State == "done" })
		r.wantAttemptBy(n, "other")
	}
	s := r.Status().Servers
	if len(s) != 1 || s[0].PID != os.Getpid() || s[0].Paused || s[0].Refused != "" || strings.Join(s[0].AtStart, " ") != "server.drain" {
		t.Errorf("%+v, want that only server.drain needs a restart", s)
	}
	_, err := db.ExecContext(t.Context(), "DELETE FROM shared WHERE key = 'duty clean'") // the cleaning interval has passed
	r.Must(err)
	r.Await("the cleaning", func() bool {
		return !slices.ContainsFunc(r.Deliveries(), func(d thread.Delivery) bool { return d.GUID == "old" })
	})

	// A configuration that cannot work is refused, too.
	r.edit("agent.sh", "gone.sh")
	r.reloads(isRefused, 2)
	r.Await("pawl status to say why", func() bool {
		return strings.Contains(r.Status().Servers[0].Refused, "no backend can work")
	})
}

func (r *rig) wantAttemptBy(n int, backend string) {
	r.T.Helper()
	s, a := r.Over(testrig.ThreadName(n)), r.State(n).Attempts
	if s.State != "done" || len(a) != 1 || a[0].Backend != backend {
		r.T.Errorf("#%d: %s (%s %q), attempts %+v; want done after one by %s", n, s.State, s.Rule, s.Reasons, a, backend)
	}
}
