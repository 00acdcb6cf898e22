package agent_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

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
		"silent start":                  {stream(config.Codex), agent.RunOptions{Startup: time.Minute, Total: time.Hour}, func(s *scripted) { io.WriteString(s.err, "Reading additional input from stdin...\n") }, time.Minute},
		"silence":                       {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute, Total: time.Hour}, func(s *scripted) { time.Sleep(4 * time.Minute); s.say(sayStarted) }, 9 * time.Minute},
		"retries only":                  {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute}, func(s *scripted) { time.Sleep(4 * time.Minute); s.say(retry); io.WriteString(s.err, "no network\n") }, 5 * time.Minute},
		"output on standard error only": {plain, agent.RunOptions{Idle: 5 * time.Minute}, func(s *scripted) { time.Sleep(4 * time.Minute); io.WriteString(s.err, ".") }, 9 * time.Minute},
		"endless output": {stream(config.Codex), agent.RunOptions{Idle: 5 * time.Minute, Total: time.Hour}, func(s *scripted) {
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
					t.Errorf("silence %s after %s, limit of silence %s", got.Silent, c.after, silent)
				}
				time.Sleep(2 * time.Hour) // let the script end
			})
		})
	}
}

func TestCancelledRunNamesTheReason(t *testing.T) {
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

func TestProcessLingeringAfterFinalEventIsKilledAndKeepsItsEnding(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() { s.say(sayMessage); s.say(sayDone) }()
		got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Total: time.Hour})
		if err != nil || got.Ending != policy.Completed || !got.Killed || got.Duration != agent.LingerTime {
			t.Errorf("%+v, error %v", got, err)
		}
	})
}

// When terminated, Claude Code kills its command, reads the result and reports success.
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

// fullDisk accepts some bytes and then fails.
type fullDisk struct{ room int }

func (d *fullDisk) Write(p []byte) (int, error) {
	if d.room -= len(p); d.room < 0 {
		return 0, errors.New("no space left on device")
	}
	return len(p), nil
}

func TestFailedTranscriptReturnsReportAndError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() { s.say(sayStarted); s.say(sayMessage); s.say(sayDone); s.end(agent.Exit{}) }()
		got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Transcript: &fullDisk{room: 50}})
		if err == nil || !strings.Contains(err.Error(), "transcript") || got.Ending != policy.Completed {
			t.Errorf("%s, error %v", got.Ending, err)
		}
	})
}

func TestRealProcessOutputIsRead(t *testing.T) {
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

// The model streams for an hour before its CLI prints anything.
func TestModelActivityPreventsIdleKill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, p := newScripted()
		go func() {
			time.Sleep(time.Hour)
			s.end(agent.Exit{})
		}()
		ctx, cancel := context.WithCancel(t.Context())
		report, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{
			Idle: time.Minute, Startup: time.Minute, Alive: func(report func()) {
				go func() {
					for wait := time.NewTicker(50 * time.Second); ; {
						report()
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

const (
	sayCall  = `{"type":"item.started","item":{"id":"%s","type":"command_execution","command":"make"}}`
	sayEnded = `{"type":"item.completed","item":{"id":"%s","type":"command_execution","command":"make","exit_code":0,"status":"completed"}}`
)

// subagentCall and subagentEnded are Claude Code's lines about a call by a subagent. within is the call that runs the
// subagent.
func subagentCall(id, within string) string {
	return fmt.Sprintf(`{"type":"assistant","message":{"id":"m%s","content":[{"type":"tool_use","id":"%[1]s","name":"Task","input":{"prompt":"%[1]s"}}]},"parent_tool_use_id":%s}`, id, parent(within))
}

func subagentEnded(id, within string) string {
	return fmt.Sprintf(`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"%s","content":"done"}]},"parent_tool_use_id":%s}`, id, parent(within))
}

func parent(call string) string {
	if call == "" {
		return "null"
	}
	return strconv.Quote(call)
}

// The message names the configured limit, although earlier runs used part of that time.
func TestEarlierRunsCountTowardTheTimeLimit(t *testing.T) {
	for name, c := range map[string]struct {
		before, idle, after time.Duration
		reason              string
	}{
		"a first run":         {0, 0, 2 * time.Hour, "killed after 2h0m0s, the limit for a run"},
		"a continued run":     {90 * time.Minute, 0, 30 * time.Minute, "killed after 2h0m0s, the limit for a run"},
		"nothing is left":     {3 * time.Hour, 0, 1, "killed after 2h0m0s, the limit for a run"},
		"a longer idle limit": {90 * time.Minute, time.Hour, 30 * time.Minute, "killed after 2h0m0s, the limit for a run"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, p := newScripted()
				got, err := agent.Run(t.Context(), p, stream(config.Codex), agent.RunOptions{Total: 2 * time.Hour, Before: c.before, Idle: c.idle})
				if err != nil {
					t.Fatal(err)
				}
				ended := fmt.Sprintf("%s after %s: %q", got.Ending, got.Duration, got.Reasons)
				if want := fmt.Sprintf("%s after %s: %q", policy.TimedOut, c.after, []string{c.reason}); ended != want {
					t.Errorf("%s; want %s", ended, want)
				}
			})
		})
	}
}

func TestInterruptedAgentEndsAtToolBoundary(t *testing.T) {
	plain, err := clis.For("command", config.Plain)
	if err != nil {
		t.Fatal(err)
	}
	begins := func(s *scripted, ids ...string) {
		s.say(sayStarted)
		s.say(sayTurn)
		for _, id := range ids {
			s.say(fmt.Sprintf(sayCall, id))
		}
	}
	ends := func(s *scripted, id string) { s.say(fmt.Sprintf(sayEnded, id)) }
	codex, claude := stream(config.Codex), stream(config.Claude)
	for name, c := range map[string]struct {
		adapter     agent.Adapter
		play        func(*scripted)
		after       time.Duration // the interruption is requested after ten seconds
		interrupted bool
		ending      policy.Ending
	}{
		"when the call ends": {codex, func(s *scripted) { begins(s, "1"); time.Sleep(30 * time.Second); ends(s, "1") }, 30 * time.Second, true, policy.Killed},
		"when the last of two calls ends": {codex, func(s *scripted) {
			begins(s, "1", "2")
			time.Sleep(20 * time.Second)
			ends(s, "2")
			time.Sleep(time.Second)
			ends(s, "1")
		}, 21 * time.Second, true, policy.Killed},
		"not by an earlier call": {codex, func(s *scripted) {
			begins(s, "1")
			ends(s, "1")
			time.Sleep(40 * time.Second)
			s.say(fmt.Sprintf(sayCall, "2"))
			ends(s, "2")
		}, 40 * time.Second, true, policy.Killed},
		"when a subagent's call ends": {claude, func(s *scripted) {
			s.say(subagentCall("task", ""))
			s.say(subagentCall("1", "task"))
			time.Sleep(30 * time.Second)
			s.say(subagentEnded("1", "task"))
		}, 30 * time.Second, true, policy.Killed},
		"when the calls of two subagents ended": {claude, func(s *scripted) {
			s.say(subagentCall("task 1", ""))
			s.say(subagentCall("task 2", ""))
			s.say(subagentCall("1", "task 1"))
			s.say(subagentCall("2", "task 2"))
			time.Sleep(20 * time.Second)
			s.say(subagentEnded("1", "task 1"))
			time.Sleep(5 * time.Second)
			s.say(subagentEnded("2", "task 2"))
		}, 25 * time.Second, true, policy.Killed},
		"when the call of a subagent's subagent ends": {claude, func(s *scripted) {
			s.say(subagentCall("task", ""))
			s.say(subagentCall("inner", "task"))
			s.say(subagentCall("1", "inner"))
			time.Sleep(30 * time.Second)
			s.say(subagentEnded("1", "inner"))
		}, 30 * time.Second, true, policy.Killed},
		"not while the agent's own call runs next to a subagent": {claude, func(s *scripted) {
			s.say(subagentCall("task", ""))
			s.say(subagentCall("own", ""))
			s.say(subagentCall("1", "task"))
			time.Sleep(20 * time.Second)
			s.say(subagentEnded("1", "task"))
			time.Sleep(20 * time.Second)
			s.say(subagentEnded("own", ""))
		}, 40 * time.Second, true, policy.Killed},
		"when a subagent without calls ends": {claude, func(s *scripted) {
			s.say(subagentCall("task", ""))
			time.Sleep(30 * time.Second)
			s.say(subagentEnded("task", ""))
		}, 30 * time.Second, true, policy.Killed},
		"without a boundary": {codex, func(s *scripted) { begins(s, "1") }, 70 * time.Second, true, policy.Killed},
		"without structure":  {plain, func(s *scripted) { io.WriteString(s.out, "working\n") }, 10 * time.Second, true, policy.Killed},
		"too late: it ended": {codex, func(s *scripted) {
			begins(s)
			time.Sleep(20 * time.Second)
			s.say(sayMessage)
			s.say(sayDone)
			s.end(agent.Exit{})
		}, 20 * time.Second, false, policy.Completed},
		"too late: it lingers": {codex, func(s *scripted) { begins(s); s.say(sayMessage); s.say(sayDone) }, 30 * time.Second, false, policy.Completed},
		"too late: it failed":  {codex, func(s *scripted) { begins(s); time.Sleep(20 * time.Second); s.end(agent.Exit{Code: 3}) }, 20 * time.Second, false, policy.Killed},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, p := newScripted()
				wanted := make(chan struct{})
				time.AfterFunc(10*time.Second, func() { close(wanted) })
				go c.play(s)
				got, err := agent.Run(t.Context(), p, c.adapter, agent.RunOptions{Total: 3 * time.Hour, Interrupt: wanted, InterruptWait: time.Minute})
				if diff := cmp.Diff([]any{nil, c.after, c.interrupted, c.ending}, []any{err, got.Duration, got.Interrupted, got.Ending}); diff != "" {
					t.Errorf("ended %s after %s, interrupted %t (%q), error %v; want %s after %s, interrupted %t",
						got.Ending, got.Duration, got.Interrupted, got.Reasons, err, c.ending, c.after, c.interrupted)
				}
			})
		})
	}
}
