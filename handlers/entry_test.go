package handlers

import (
	"testing"

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
		if !ok || e.Kind != tt.kind || f.Word != tt.word || f.Backend != tt.backend {
			t.Errorf("/pawl %s %q with the label %q: %s about %q, backend %q; want %s, %q, %q", tt.command, tt.said, tt.pin, e.Kind, f.Word, f.Backend, tt.kind, tt.word, tt.backend)
		}
	}
}
