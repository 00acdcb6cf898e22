package handlers

import (
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestCommandWithoutAVisibleEffectIsAnswered(t *testing.T) {
	b := Backends{
		Known:     func(name string) bool { return name == "mine" },
		Escalates: func() bool { return false },
	}
	running := thread.State{Run: 1}
	for _, tt := range []struct {
		text, pin string
		command   string
		state     thread.State
		want      string // kind, word, backend
		answered  bool
	}{
		{command: "use", text: "mine", want: "control  mine", answered: true},
		{command: "use", text: "other", want: "question other "},
		{command: "use", text: "", want: "question  "},
		{command: "solve", pin: "other", want: "question other "},
		{command: "solve", pin: "mine", want: "feedback  "},
		{command: "solve", want: "feedback  "},
		{command: "ask", text: " ", want: "question  "},
		{command: "steer", text: " ", want: "question  "},
		{command: "steer", text: "left", state: running, want: "feedback  "},
		{command: "go", want: "question  "},
		{command: "update", want: "question  "},
		{command: "stop", want: "control  ", answered: true},
		{command: "stop", state: running, want: "control  "},
		{command: "escalate", want: "feedback  ", answered: true},
	} {
		j := feedback.Judgement{Accepted: true, Command: feedback.Command{Name: tt.command, Text: tt.text}}
		e := EntryOf(tt.state, false, thread.Feedback{Command: tt.command, Text: tt.text, Pin: tt.pin}, j, b)
		f, ok := e.Data.(thread.Feedback)
		if !ok {
			t.Fatalf("the event's data is %T, want feedback", e.Data)
		}
		got := fmt.Sprintf("%s %s %s", e.Kind, f.Word, f.Backend)
		if answered := e.Question != nil; got != tt.want || answered != tt.answered {
			t.Errorf("/pawl %s %q with the label %q: %q, answered %t; want %q, %t", tt.command, tt.text, tt.pin, got, answered, tt.want, tt.answered)
		}
	}
}

func TestEveryCommandThatAsksHasAnAnswer(t *testing.T) {
	answer := func(command string) string {
		return checkrun.Answer(checkrun.View{}, thread.Feedback{Command: command}, "pawl-bot", nil, false)
	}
	none := Backends{
		Known:     func(string) bool { return false },
		Escalates: func() bool { return false },
	}
	for _, c := range policy.Commands {
		j := feedback.Judgement{Accepted: true, Command: feedback.Command{Name: c.Name}}
		e := EntryOf(thread.State{}, false, thread.Feedback{Command: c.Name}, j, none)
		asks := e.Kind == thread.KindQuestion || e.Question != nil || c.Effect == policy.Pauses
		if asks && answer(c.Name) == answer(policy.UnknownCommand) {
			t.Errorf("/pawl %s of policy/commands.go is answered with help: Answer in internal/checkrun/comment.go has no case for it", c.Name)
		}
	}
}
