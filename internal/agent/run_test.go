package agent_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/policy"
)

// scripted is a process whose output the test writes. Kill ends its streams,
// as the end of a real process does.
type scripted struct {
	out, err *io.PipeWriter
	ended    chan struct{}
	once     sync.Once
	kills    int
	exit     agent.Exit
}

func newScripted() (*scripted, agent.Process) {
	s := &scripted{ended: make(chan struct{})}
	outR, outW := io.Pipe()
	errR, errW := io.Pipe()
	s.out, s.err = outW, errW
	return s, agent.Process{Stdout: outR, Stderr: errR, Kill: s.kill, Wait: func() (agent.Exit, error) {
		<-s.ended
		return s.exit, nil
	}}
}

func (s *scripted) end(exit agent.Exit) {
	s.once.Do(func() {
		s.exit = exit
		s.out.Close()
		s.err.Close()
		close(s.ended)
	})
}

func (s *scripted) kill() {
	s.kills++
	s.end(agent.Exit{Code: -1, Signal: "killed"})
}

func (s *scripted) say(line string) { io.WriteString(s.out, line+"\n") }

const (
	sayStarted = `{"type":"thread.started","thread_id":"a"}`
	sayTurn    = `{"type":"turn.started"}`
	sayMessage = `{"type":"item.completed","item":{"id":"1","type":"agent_message","text":"done"}}`
	sayDone    = `{"type":"turn.completed","usage":{"input_tokens":7,"cached_input_tokens":1,"output_tokens":2}}`
)

func TestARunIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		var copied bytes.Buffer
		var events []agent.Kind
		go func() {
			s.say(sayStarted)
			time.Sleep(time.Minute)
			s.say(sayMessage)
			io.WriteString(s.err, "a warning\n")
			s.say(sayDone)
			s.end(agent.Exit{})
		}()
		got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{
			Total: time.Hour, Idle: 5 * time.Minute, Startup: time.Minute,
			Transcript: &copied, OnEvent: func(e agent.Event) { events = append(events, e.Kind) },
		})
		if err != nil || got.Ending != policy.Completed || got.Killed || got.Duration != time.Minute || got.Tokens.Input != 7 {
			t.Errorf("%+v, error %v", got, err)
		}
		if got.Stderr != "a warning\n" || copied.String() != sayStarted+"\n"+sayMessage+"\n"+sayDone+"\n" {
			t.Errorf("stderr %q, transcript %q", got.Stderr, copied.String())
		}
		if len(events) != 3 || events[0] != agent.SessionStarted || events[2] != agent.Finished {
			t.Errorf("events %v", events)
		}
	})
}

func TestOverdueRunsAreKilled(t *testing.T) {
	plain, err := clis.For("command", config.Plain)
	if err != nil {
		t.Fatal(err)
	}
	retry := `{"type":"error","message":"Reconnecting... waiting for network (Connection failed: error sending request)"}`
	for name, c := range map[string]struct {
		adapter agent.Adapter
		options agent.RunOptions
		play    func(*scripted)
		after   time.Duration
	}{
		"silent start":     {stream(config.Codex), agent.RunOptions{Startup: time.Minute, Total: time.Hour}, func(s *scripted) { io.WriteString(s.err, "Reading additional input from stdin...\n") }, time.Minute},
		"silence":          {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute, Total: time.Hour}, func(s *scripted) { time.Sleep(4 * time.Minute); s.say(sayStarted) }, 9 * time.Minute},
		"retries only":     {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute}, func(s *scripted) { time.Sleep(4 * time.Minute); s.say(retry); io.WriteString(s.err, "no network\n") }, 5 * time.Minute},
		"plain complaints": {plain, agent.RunOptions{Idle: 5 * time.Minute}, func(s *scripted) { time.Sleep(4 * time.Minute); io.WriteString(s.err, ".") }, 9 * time.Minute},
		"endless talk": {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute, Total: time.Hour}, func(s *scripted) {
			for range 70 {
				s.say(sayTurn)
				time.Sleep(time.Minute)
			}
		}, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newScripted()
				go c.play(s)
				got, err := agent.Run(t.Context(), p, c.adapter, c.options)
				if err != nil || got.Ending != policy.TimedOut || !got.Killed || got.Duration != c.after || s.kills != 1 {
					t.Errorf("%s after %s, %d kills, reasons %q, error %v; want timed_out after %s", got.Ending, got.Duration, s.kills, got.Reasons, err, c.after)
				}
				if silent := max(c.options.Idle, c.options.Startup); (got.Silent == silent) != (c.after < time.Hour) {
					t.Errorf("it counts as silent for %s; its time was %s, its silence %s", got.Silent, c.after, silent)
				}
				time.Sleep(2 * time.Hour) // let the script end
			})
		})
	}
}

func TestACancelledRunSaysWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		s, p := newScripted()
		go func() {
			s.say(sayStarted)
			time.Sleep(time.Second)
			cancel(errors.New("/pawl stop by ada"))
		}()
		got, err := agent.Run(ctx, p, stream(config.Codex), agent.RunOptions{})
		if err != nil || got.Ending != policy.Killed || !got.Killed || got.Reasons[0] != "killed: /pawl stop by ada" {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

func TestAProcessThatStaysAfterItsFinalEventIsKilledAndItsEndingKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() { s.say(sayMessage); s.say(sayDone) }()
		got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Total: time.Hour})
		if err != nil || got.Ending != policy.Completed || !got.Killed || got.Duration != agent.LingerTime {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

// Claude Code, told to end, kills its command, hears of it and reports success.
func TestFinalEventAfterAKillDoesNotCount(t *testing.T) {
	for name, last := range map[string]string{"success": sayDone, "failure": `{"type":"turn.failed","error":{"message":"unexpected status 401 Unauthorized"}}`} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newScripted()
				kill := p.Kill
				p.Kill = func() { s.say(sayMessage); s.say(last); time.Sleep(time.Second); kill() }
				go s.say(sayStarted)
				got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Total: time.Hour})
				if err != nil || got.Ending != policy.TimedOut || got.Limit != nil || len(got.Reasons) != 1 || got.FinalMessage != "done" {
					t.Errorf("%+v, error %v; want it timed out", got, err)
				}
			})
		})
	}
}

// fullDisk takes some bytes and then fails.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room -= len(p); d.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestALostTranscriptIsAnErrorBesideTheReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() { s.say(sayStarted); s.say(sayMessage); s.say(sayDone); s.end(agent.Exit{}) }()
		got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Transcript: &fullDisk{room: 50}})
		if err == nil || !strings.Contains(err.Error(), "transcript") || got.Ending != policy.Completed {
			t.Errorf("%s, error %v", got.Ending, err)
		}
	})
}

func TestARealProcessIsRead(t *testing.T) {
	cmd := exec.Command("sh", "-c", "cat; echo complaint >&2; exit 3")
	cmd.Stdin = strings.NewReader(sayStarted + "\n" + sayTurn + "\n")
	stdout, err1 := cmd.StdoutPipe()
	stderr, err2 := cmd.StderrPipe()
	if err := errors.Join(err1, err2, cmd.Start()); err != nil {
		t.Fatal(err)
	}
	got, err := agent.Run(t.Context(), agent.Process{
		Stdout: stdout, Stderr: stderr, Kill: func() { cmd.Process.Kill() },
		Wait: func() (agent.Exit, error) {
			var failed *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &failed) {
				return agent.Exit{}, err
			}
			return agent.Exit{Code: cmd.ProcessState.ExitCode()}, nil
		},
	}, stream(config.Codex), agent.RunOptions{Total: time.Minute})
	if err != nil || got.Ending != policy.Crashed || got.Exit.Code != 3 || got.Stderr != "complaint\n" {
		t.Errorf("%+v, error %v", got, err)
	}
}

// TestOtherSignsOfLifePreventTheKill has a model speak for an hour before its CLI prints a word.
func TestOtherSignsOfLifePreventTheKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() {
			time.Sleep(time.Hour)
			s.end(agent.Exit{})
		}()
		ctx, cancel := context.WithCancel(t.Context())
		report, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{
			Idle: time.Minute, Startup: time.Minute, Alive: func(tell func()) {
				go func() {
					for wait := time.NewTicker(50 * time.Second); ; {
						tell()
						select {
						case <-wait.C:
						case <-ctx.Done():
							return
						}
					}
				}()
			},
		})
		if err != nil || report.Killed || report.Duration != time.Hour {
			t.Errorf("%v, killed %v after %s: %q", err, report.Killed, report.Duration, report.Reasons)
		}
		cancel()
	})
}
