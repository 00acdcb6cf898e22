package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
)

// order runs a command of the shell against the rig's database.
func (r *rig) order(args ...string) (code int, said string) {
	r.T.Helper()
	code, out, errs := pawl(r.T, r.Dir, nil, append(args, "--config", r.File())...)
	return code, out + errs
}

// What comments and buttons do, the shell does while the server runs, in the person's name.
func TestOrdersFromTheShell(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo '\033[2Jworking'; touch "+r.Ctrl()+"/began; while test ! -e "+r.Ctrl()+"/end; do sleep 0.05; done; echo two >> a.txt; echo finished\n", "")
	r.Start()
	n := r.Solve("Add a line", "Please add a line to a.txt.")
	name := fmt.Sprintf("%s#%d", testrig.Repo, n)
	r.Await("the attempt", func() bool { return r.Has("began") })
	if code, said := r.order("retry", name); code != exitFailed || !strings.Contains(said, "an attempt is running; stop it first") {
		t.Errorf("retry: exit %d: %s", code, said)
	}
	if code, said := r.order("logs", name); code != exitDone || !strings.Contains(said, "working\n") || strings.Contains(said, "\x1b") {
		t.Errorf("logs: exit %d: %q", code, said)
	}
	if code, said := r.order("status", name); code != exitDone || !strings.Contains(said, "Add a line") || !strings.Contains(said, "Attempt 1 is running on mine") {
		t.Errorf("status: exit %d: %s", code, said)
	}
	if code, said := r.order("stop", name); code != exitDone || !strings.Contains(said, "stop is ordered") {
		t.Errorf("stop: exit %d: %s", code, said)
	}
	if s := r.Over(name); s.Rule != policy.RuleCancelled || !strings.Contains(strings.Join(s.Reasons, ""), "asked to stop") {
		t.Errorf("after stop: %+v", s)
	}
	r.Touch("end")
	if code, said := r.order("pause", testrig.Repo); code != exitDone || !strings.Contains(said, "is paused") {
		t.Errorf("pause: exit %d: %s", code, said)
	}
	if code, said := r.order("retry", name); code != exitDone {
		t.Errorf("retry: exit %d: %s", code, said)
	}
	r.Await("the pause", func() bool { s := r.Thread(name); return s.Rule == policy.RulePaused && s.State == "stopped" })
	if code, said := r.order("unpause", testrig.Repo); code != exitDone || !strings.Contains(said, "threads that go on: 1") {
		t.Errorf("unpause: exit %d: %s", code, said)
	}
	r.Await("the work", func() bool { return r.PullOf(n) > 0 && r.Thread(name).State == "done" })
	if code, said := r.order("logs", "-f", "-n", "1", name); code != exitDone || said != "finished\n" {
		t.Errorf("logs of the last attempt: exit %d: %q", code, said)
	}
	if code, said := r.order("resume", name); code != exitFailed || !strings.Contains(said, "the work is done; retry makes one more attempt") {
		t.Errorf("resume: exit %d: %s", code, said)
	}
	if code, said := r.order("close-breaker", "nobody"); code != exitFailed || !strings.Contains(said, "no limit was told") {
		t.Errorf("close-breaker: exit %d: %s", code, said)
	}
}

func TestOrdersThatAreNoneSayHowTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	for args, want := range map[string]string{
		"retry":                   "see pawl retry --help",
		"retry widgets":           "want owner/repo#number",
		"pause acme/widgets#7":    "is not OWNER/REPO",
		"stop acme/widgets#999":   "Pawl was never asked to work here",
		"logs acme/widgets#999":   "has had no attempt",
		"status acme/widgets#0":   "see pawl status --help",
		"logs -n x acme/w#1":      "see pawl logs --help",
		"nonsense":                "see pawl --help",
		"deliveries retry":        "see pawl deliveries retry --help",
		"unpause acme/widgets":    "is not paused",
		"resume acme/widgets#999": "Pawl was never asked",
	} {
		code, out, errs := pawl(t, r.Dir, nil, append(strings.Fields(args), "--config", r.File())...)
		if code == exitDone || !strings.Contains(out+errs, want) {
			t.Errorf("pawl %s: exit %d, without %q: %s%s", args, code, want, out, errs)
		}
	}
}

func TestTheTailOfALogIsItsLastLines(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 100_000)
	for text, want := range map[string]string{
		"":                           "",
		"a\nb\nc\n":                  "b\nc\n",
		"a\nb\nc":                    "b\nc",
		"a":                          "a",
		"\n\n\n":                     "\n\n",
		long + "\n" + long + "\nc\n": long + "\nc\n",
	} {
		file := filepath.Join(t.TempDir(), "transcript")
		write(t, file, text)
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		if err := tail(f, 2, &out); err != nil || out.String() != want {
			t.Errorf("the last two lines of %.20q are %.20q (%v), want %.20q", text, out.String(), err, want)
		}
		f.Close()
	}
}
