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

// order runs a command of the shell beside the server and checks its exit code, and
// that it says something, without control characters.
func (r *rig) order(wantCode int, want string, args ...string) (said string) {
	r.T.Helper()
	code, out, errs := pawl(r.T, r.Dir, nil, append(args, "--config", r.File())...)
	said = out + errs
	if code != wantCode || !strings.Contains(said, want) || strings.Contains(said, "\x1b") {
		r.T.Errorf("pawl %s: exit %d, want %d and %q:\n%s", strings.Join(args, " "), code, wantCode, want, said)
	}
	return said
}

// What comments and buttons do, the shell does while the server runs, in the person's name.
func TestOrdersFromTheShell(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent("cat > /dev/null; echo '\033[2Jworking'; "+testrig.Gated+"echo two >> a.txt; echo finished\n", "")
	r.Start()
	n := r.Solve("Add a line", "Please add a line to a.txt.")
	name := testrig.ThreadName(n)
	r.Await("the attempt", func() bool { return r.Has("ready") })
	r.order(exitFailed, "an attempt is running; stop it first", "retry", name)
	r.order(exitDone, "working\n", "logs", name)
	if said := r.order(exitDone, "Attempt 1 is running on mine", "status", name); !strings.Contains(said, "Add a line") {
		t.Errorf("status does not name the issue: %s", said)
	}
	r.order(exitDone, "stop is requested", "stop", name)
	if s := r.Over(name); s.Rule != policy.RuleCancelled || !strings.Contains(strings.Join(s.Reasons, ""), "asked to stop") {
		t.Errorf("after stop: %+v", s)
	}
	r.Touch("go")
	r.order(exitDone, "is paused", "pause", testrig.Repo)
	r.order(exitDone, "", "retry", name)
	r.Await("the pause", func() bool { s := r.Thread(name); return s.Rule == policy.RulePaused && s.State == "stopped" })
	r.order(exitDone, "threads that continue: 1", "unpause", testrig.Repo)
	r.Await("the work", func() bool { return r.PullOf(n) > 0 && r.Thread(name).State == "done" })
	if said := r.order(exitDone, "", "logs", "-f", "-n", "1", name); said != "finished\n" {
		t.Errorf("the last line of the last attempt is %q", said)
	}
	r.order(exitFailed, "the work is done; retry makes one more attempt", "resume", name)
	r.order(exitDone, "Recoveries of the last 8 weeks", "status", "--learning")
	r.order(exitFailed, "no known limit", "close-breaker", "nobody")
}

func TestOrdersThatAreNoneSayHowTheyAreWritten(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Agent(testrig.PlainAgent, "")
	r.order(exitFailed, "start pawl serve once", "deliveries", "retry", "all")
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

func TestAPersonDecidesOnDeliveriesThatWereGivenUp(t *testing.T) {
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
	if _, said := r.Ready(); !strings.Contains(said.Part(t, "deliveries").Detail, "3 could not be handled") {
		t.Errorf("/readyz: %+v, want that three were given up", said)
	}
	if _, page := r.Get("/accounts"); !strings.Contains(page, "two") || !strings.Contains(page, "given up") || strings.Contains(page, "<script>alert") {
		t.Errorf("the page does not list them, or not safely:\n%s", page)
	}
	listed := func(want int) {
		t.Helper()
		if said := r.order(exitDone, "", "status"); strings.Count(said, "given up; ") != want {
			t.Errorf("pawl status does not list %d deliveries:\n%s", want, said)
		}
	}
	listed(3)
	r.order(exitDone, "two: 1 dismissed", "deliveries", "dismiss", "two")
	r.order(exitDone, "one: 1 will be retried", "deliveries", "retry", "one")
	r.Await("the first to be handled", func() bool { return r.DeliveryOf("one").State == thread.Handled })
	listed(1)
	r.Stop(syscall.SIGTERM) // the commands need no server
	r.order(exitDone, "all: 1 will be retried", "deliveries", "retry", "all")
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
