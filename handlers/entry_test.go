package handlers

import (
	"fmt"
	"testing"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestInvisibleCommandIsAlsoAQuestion(t *testing.T) {
	b := Backends{
		Known:     func(name string) bool { return name == "mine" },
		Escalates: func() bool { return false },
	}
	running := thread.State{Run: 1}
	for _, tt := range []struct {
		said, pin string
		command   string
		state     thread.State
		want      string // kind, word, backend
		told      bool
	}{
		{command: "use", said: "mine", want: "control  mine", told: true},
		{command: "use", said: "other", want: "question other "},
		{command: "use", said: "", want: "question  "},
		{command: "solve", pin: "other", want: "question other "},
		{command: "solve", pin: "mine", want: "feedback  "},
		{command: "solve", want: "feedback  "},
		{command: "ask", said: " ", want: "question  "},
		{command: "go", want: "question  "},
		{command: "update", want: "question  "},
		{command: "stop", want: "control  ", told: true},
		{command: "stop", state: running, want: "control  "},
		{command: "escalate", want: "feedback  ", told: true},
	} {
		j := feedback.Judgement{Accepted: true, Command: feedback.Command{Name: tt.command, Text: tt.said}}
		e := EntryOf(tt.state, false, thread.Feedback{Command: tt.command, Text: tt.said, Pin: tt.pin}, j, b)
		f, ok := e.Data.(thread.Feedback)
		if !ok {
			t.Fatalf("%T is no feedback", e.Data)
		}
		got := fmt.Sprintf("%s %s %s", e.Kind, f.Word, f.Backend)
		if told := e.Question != nil; got != tt.want || told != tt.told {
			t.Errorf("/pawl %s %q with the label %q: %q, told %t; want %q, %t", tt.command, tt.said, tt.pin, got, told, tt.want, tt.told)
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
