package main

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// shell runs a pawl command next to the server. It checks the exit code, and that the output contains a text and no
// control characters.
func (r *rig) shell(wantCode int, want string, args ...string) (text string) {
	r.T.Helper()
	code, out, errs := pawl(r.T, r.Dir, nil, append(args, "--config", r.File())...)
	text = out + errs
	if code != wantCode || !strings.Contains(text, want) || strings.Contains(text, "\x1b") {
		r.T.Errorf("pawl %s: exit %d, want %d and %q:\n%s", strings.Join(args, " "), code, wantCode, want, text)
	}
	return text
}

// Shell commands have the same effect as comments and buttons while the server runs. The log names the shell's user.
func TestShellCommands(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo '\033[2Jworking'; "+testrig.Gated+"echo two >> a.txt; echo finished\n", "")
	r.Start()
	n := r.Solve("Add a line", "Please add a line to a.txt.")
	name := testrig.ThreadName(n)
	r.Await("the attempt", func() bool { return r.Has("ready") })
	r.shell(exitFailed, "an attempt is running; stop it first", "retry", name)
	r.shell(exitDone, "working\n", "logs", name)
	if output := r.shell(exitDone, "Attempt 1 is running on mine", "status", name); !strings.Contains(output, "Add a line") {
		t.Errorf("status does not name the issue: %s", output)
	}
	r.shell(exitDone, "stop is requested", "stop", name)
	if s := r.Over(name); s.Rule != policy.RuleCancelled || !strings.Contains(strings.Join(s.Reasons, ""), "asked to stop") {
		t.Errorf("after stop: %+v", s)
	}
	r.Touch("go")
	r.shell(exitDone, "is paused", "pause", testrig.Repo)
	r.shell(exitDone, "", "retry", name)
	r.Await("the pause", func() bool { s := r.Thread(name); return s.Rule == policy.RulePaused && s.State == "stopped" })
	r.shell(exitDone, "threads that continue: 1", "unpause", testrig.Repo)
	r.Await("the work", func() bool { return r.PullOf(n) > 0 && r.Thread(name).State == "done" })
	if output := r.shell(exitDone, "", "logs", "-f", "-n", "1", name); output != "finished\n" {
		t.Errorf("the last line of the last attempt is %q", output)
	}
	r.shell(exitFailed, "the work is done; retry makes one more attempt", "resume", name)
	r.shell(exitDone, "Recoveries of the last 8 weeks", "status", "--learning")
	r.shell(exitFailed, "no known limit", "close-breaker", "nobody")
}

func TestInvalidShellCommandsExplainUsage(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.shell(exitFailed, "start pawl serve once", "deliveries", "retry", "all")
	r.Start()
	for args, want := range map[string]string{
		"retry":                           "see pawl retry --help",
		"retry widgets":                   "want owner/repo#number",
		"pause acme/widgets#7":            "is not OWNER/REPO",
		"stop acme/widgets#999":           "Pawl was never asked to work here",
		"logs acme/widgets#999":           "has no attempts",
		"status acme/widgets#0":           "see pawl status --help",
		"status --export acme/widgets#99": "its log is empty",
		"status --export nonsense":        "want owner/repo#number",
		"logs -n x acme/w#1":              "see pawl logs --help",
		"nonsense":                        "see pawl --help",
		"deliveries retry":                "see pawl deliveries retry --help",
		"deliveries retry four":           "retry four: no unhandled delivery has this GUID",
		"unpause acme/widgets":            "is not paused",
		"resume acme/widgets#999":         "Pawl was never asked",
	} {
		code, out, errs := pawl(t, r.Dir, nil, append(strings.Fields(args), "--config", r.File())...)
		if code == exitDone || !strings.Contains(out+errs, want) {
			t.Errorf("pawl %s: exit %d, without %q: %s%s", args, code, want, out, errs)
		}
	}
}

func TestOperatorRetriesOrDismissesDeliveries(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	db := r.Database()
	for _, guid := range []string{"one", "two", "three"} {
		_, err := db.ExecContext(t.Context(), `INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at)
			VALUES (?, 'ping', x'7b7d', ?, 'failed', ?, 100, 0)`, guid, time.Now().Add(-96*time.Hour).UnixMicro(), "<script>alert(1)</script>\x1b[31m")
		r.Must(err)
	}
	if _, health := r.Ready(); !strings.Contains(health.Part(t, "deliveries").Detail, "3 could not be handled") {
		t.Errorf("/readyz: %+v, want three deliveries given up", health)
	}
	if _, page := r.Get("/accounts"); !strings.Contains(page, "two") || !strings.Contains(page, "given up") || strings.Contains(page, "<script>alert") {
		t.Errorf("the page does not list the deliveries safely:\n%s", page)
	}
	listed := func(want int) {
		t.Helper()
		if output := r.shell(exitDone, "", "status"); strings.Count(output, "given up; ") != want {
			t.Errorf("pawl status does not list %d deliveries:\n%s", want, output)
		}
	}
	listed(3)
	r.shell(exitDone, "two: 1 dismissed", "deliveries", "dismiss", "two")
	r.shell(exitDone, "one: 1 will be retried", "deliveries", "retry", "one")
	r.Await("the first to be handled", func() bool { return r.DeliveryOf("one").State == thread.Handled })
	listed(1)
	r.Stop(syscall.SIGTERM) // the commands work without a running server
	r.shell(exitDone, "all: 1 will be retried", "deliveries", "retry", "all")
	r.Start()
	r.Await("the third to be handled", func() bool { return r.DeliveryOf("three").State == thread.Handled })
	listed(0)
	var logged string
	r.Must(db.QueryRowContext(t.Context(), "SELECT group_concat(data, ' ') FROM events WHERE kind = 'operated'").Scan(&logged))
	who := operator(time.Now()).Login
	for _, want := range []string{
		`{"what":"delivery_dismissed","subject":"two","by":"` + who + `","where":"in the shell"}`,
		`{"what":"delivery_retried","subject":"one","by":"` + who + `"`,
	} {
		if !strings.Contains(logged, want) {
			t.Errorf("%s is not in the server's log: %s", want, logged)
		}
	}
}

func TestTailShowsTheLastLines(t *testing.T) {
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
