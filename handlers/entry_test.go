package handlers

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestAnOrderForABackendThatIsNotThereIsAQuestion(t *testing.T) {
	only := Backends{
		Known:     func(name string) bool { return name == "mine" },
		Escalates: func() bool { return true },
	}
	for _, tt := range []struct {
		said, pin string
		command   string
		kind      thread.Kind
		word      string
		backend   string
	}{
		{command: "use", said: "mine", kind: thread.KindControl, backend: "mine"},
		{command: "use", said: "other", kind: thread.KindQuestion, word: "other"},
		{command: "use", said: "", kind: thread.KindQuestion},
		{command: "solve", pin: "other", kind: thread.KindQuestion, word: "other"},
		{command: "solve", pin: "mine", kind: thread.KindFeedback},
		{command: "solve", kind: thread.KindFeedback},
	} {
		j := feedback.Judgement{Accepted: true, Command: feedback.Command{Name: tt.command, Text: tt.said}}
		e := EntryOf(thread.State{}, false, thread.Feedback{Command: tt.command, Pin: tt.pin}, j, only)
		f, ok := e.Data.(thread.Feedback)
		if !ok {
			t.Fatalf("%T is no feedback", e.Data)
		}
		got := []string{string(e.Kind), f.Word, f.Backend}
		if d := cmp.Diff([]string{string(tt.kind), tt.word, tt.backend}, got); d != "" {
			t.Errorf("/pawl %s %q with the label %q: kind, word and backend (-want +got):\n%s", tt.command, tt.said, tt.pin, d)
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
		asks := e.Kind == thread.KindQuestion || e.Told != nil || c.Effect == policy.Pauses
		if asks && answer(c.Name) == answer(policy.UnknownCommand) {
			t.Errorf("/pawl %s of policy/commands.go is answered with help: Answer in internal/checkrun/comment.go has no case for it", c.Name)
		}
	}
}
