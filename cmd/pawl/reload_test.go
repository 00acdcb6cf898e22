package main

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// edit changes the server's file: in place, or as editors do that write another file and rename it.
func (r *rig) edit(replace bool, oldnew ...string) {
	r.T.Helper()
	path := filepath.Join(r.Dir, "pawl.yml")
	text, err := os.ReadFile(path)
	r.Must(err)
	next := strings.NewReplacer(oldnew...).Replace(string(text))
	if next == string(text) {
		r.T.Fatalf("nothing of %q is in\n%s", oldnew, text)
	}
	if replace {
		r.Must(os.WriteFile(path+"~", []byte(next), 0o600))
		r.Must(os.Rename(path+"~", path))
		return
	}
	r.Must(os.WriteFile(path, []byte(next), 0o600))
}

// reloads awaits that the log has so many lines that say so.
func (r *rig) reloads(message string, n int) {
	r.T.Helper()
	r.Await(message, func() bool { return strings.Count(r.Log.String(), message) >= n })
}

const inForceNow, isRefused = "was read again and is in force", "the new configuration is refused"

// A server goes on with its file as it changes, and an attempt ends as it began. A pause is a switch.
func TestAServerGoesOnWithItsFileWithoutARestart(t *testing.T) {
	t.Parallel()
	r := newProcessRig(t, nil)
	r.Agent("cat > /dev/null; touch "+r.Ctrl()+"/began; while test ! -e "+r.Ctrl()+"/end; do sleep 0.05; done; echo two >> a.txt; echo finished\n", "")
	chat := testrig.NewChat(t)
	r.Config += "policy: {paused: false, caps: {per_server_per_day: 4}}\nretention: {deliveries: 1000h}\nnotify: {url: \"\"}\n"
	r.Start()
	first := r.Solve("One", "Please add a line to a.txt.")
	r.Await("the attempt", func() bool { return r.Has("began") })

	// SIGHUP, while an attempt runs: a pause, and the backend has another name.
	r.edit(false, "paused: false", "paused: true", "name: mine", "name: other")
	r.Must(r.Server.Cmd.Process.Signal(syscall.SIGHUP))
	r.reloads(inForceNow, 1)
	second := r.Solve("Two", "Please add a line to a.txt.")
	r.Await("the pause", func() bool {
		s := r.Thread(testrig.ThreadName(second))
		return s.Rule == policy.RulePaused && s.State == "stopped"
	})
	if _, running := r.State(first).Running(); !running {
		t.Error("the attempt that ran was ended by the reload")
	}
	r.Touch("end")
	if s := r.Over(testrig.ThreadName(first)); s.State != "done" || r.PullOf(first) == 0 {
		t.Errorf("the attempt that ran: %+v", s)
	}
	if a := r.State(first).Attempts; len(a) != 1 || a[0].Backend != "mine" {
		t.Errorf("%+v, want one attempt by the backend that it began with", a)
	}
	r.Await("its ordinary log line", func() bool { return strings.Contains(r.Log.String(), `policy.paused: \"false\" → \"true\"`) })

	// A file with an error is refused with line and cure, and nothing changes.
	r.edit(false, "paused: true", "paused: perhaps")
	r.reloads(isRefused, 1)
	for _, command := range []string{"status", "doctor"} {
		_, out, said := pawl(t, r.Dir, nil, command, "--config", r.good())
		if line := r.line("perhaps"); !strings.Contains(out+said, "is refused: ") || !strings.Contains(out+said, "pawl.yml:"+line+":") || !strings.Contains(out+said, "write true or false") {
			t.Errorf("pawl %s does not say what is refused in line %s:\n%s%s", command, line, out, said)
		}
	}
	third := r.Solve("Three", "Please add a line to a.txt.")
	r.Await("the pause to hold", func() bool { // status would need a file without an error
		d := r.State(third).Decision
		return d != nil && d.Rule == policy.RulePaused
	})

	// A file that an editor replaced.
	r.edit(true, "paused: perhaps", "paused: false", "drain: 0s", "drain: 1s")
	r.reloads(inForceNow, 2)
	for _, n := range []int{second, third} {
		if s := r.Over(testrig.ThreadName(n)); s.State != "done" {
			r.Await("the paused thread to go on by itself", func() bool { return r.Thread(testrig.ThreadName(n)).State == "done" })
		}
		if a := r.State(n).Attempts; len(a) != 1 || a[0].Backend != "other" {
			t.Errorf("#%d: %+v, want one attempt by the new backend", n, a)
		}
	}
	s := r.Status().Servers
	if len(s) != 1 || s[0].PID != r.Server.Cmd.Process.Pid || s[0].Paused || s[0].Refused != "" || strings.Join(s[0].AtStart, " ") != "server.drain" {
		t.Errorf("%+v, want that server.drain takes a restart, and nothing else", s)
	}
	if _, out, _ := pawl(t, r.Dir, nil, "doctor", "--json", "--config", "pawl.yml"); !strings.Contains(out, "but for what only a start reads: server.drain") {
		t.Errorf("pawl doctor does not say what takes a restart: %s", out)
	}

	// Where the operator is told, what is logged, and what is removed.
	if !strings.Contains(r.Log.String(), `"level":"debug"`) {
		t.Errorf("at debug nothing of that level is logged:\n%s", r.Log)
	}
	db := r.Database()
	change := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		r.Must(err)
	}
	for guid, hours := range map[string]int{"old": 999, "young": 1} { // without the latter the clock seems to be wrong
		change("INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at) VALUES (?, 'ping', x'7b7d', ?, 'handled', '', 1, 0)", guid, time.Now().Add(-time.Duration(hours)*time.Hour).UnixMicro())
	}
	r.edit(false, `url: ""`, "url: \""+chat.URL+"\"", "level: debug", "level: info", "deliveries: 1000h", "deliveries: 998h")
	r.reloads(inForceNow, 3)
	change("DELETE FROM shared WHERE key = 'duty clean'") // the hour until the next cleaning has passed
	r.Settle()
	before := len(r.Log.String())
	fourth := r.Solve("Four", "Please add a line to a.txt.")
	r.Over(testrig.ThreadName(fourth))
	r.Settle()
	if after := r.Log.String()[before:]; strings.Contains(after, `"level":"debug"`) || !strings.Contains(after, "pull request opened") {
		t.Errorf("at info the log has:\n%s", after)
	}
	r.Await("the cleaning", func() bool {
		return !slices.ContainsFunc(r.Deliveries(), func(d thread.Delivery) bool { return d.GUID == "old" })
	})
	r.Await("the message", func() bool { return strings.Contains(chat.Heard(), "4 of 4 attempts (0 left)") })

	// Nothing that could work is refused, too.
	r.edit(false, "agent.sh", "gone.sh")
	r.reloads(isRefused, 2)
	if !strings.Contains(r.Log.String(), "no backend can work") {
		t.Errorf("a file without a backend that works is not refused:\n%s", r.Log)
	}
	if code := r.Stop(syscall.SIGTERM); code != exitDone {
		t.Errorf("exit code %d", code)
	}
	if s := r.Status().Servers; len(s) > 0 {
		t.Errorf("%+v, and no server runs", s)
	}
}

// good is a file beside the server's without its error, by which commands can be called.
func (r *rig) good() string {
	r.T.Helper()
	text, err := os.ReadFile(filepath.Join(r.Dir, "pawl.yml"))
	r.Must(err)
	path := filepath.Join(r.Dir, "good.yml")
	r.Must(os.WriteFile(path, []byte(strings.Replace(string(text), "perhaps", "true", 1)), 0o600))
	return path
}

// line is the number of the line of the server's file that holds a text.
func (r *rig) line(text string) string {
	r.T.Helper()
	all, err := os.ReadFile(filepath.Join(r.Dir, "pawl.yml"))
	r.Must(err)
	before, _, found := strings.Cut(string(all), text)
	if !found {
		r.T.Fatalf("%q is not in\n%s", text, all)
	}
	return strconv.Itoa(strings.Count(before, "\n") + 1)
}
