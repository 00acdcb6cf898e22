package thread

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// saidAt returns a comment made at a time.
func saidAt(who string, at time.Duration, text string) happened {
	return happened{KindFeedback, Feedback{Source: policy.FromComment, By: feedback.Actor{Login: who}, Text: text, MadeAt: begin.Add(at)}}
}

func typedOf(t *testing.T, all ...happened) (n int) {
	t.Helper()
	for _, is := range fold(t, all...).typed() {
		if is {
			n++
		}
	}
	return n
}

// numbered returns ada's remarks at irregular times that differ only in numbers.
func numbered(format string, from, n int) (all []happened) {
	for i := range n {
		all = append(all, saidAt("ada", time.Duration(from+i)*time.Hour+time.Duration(i*i)*77*time.Second, fmt.Sprintf(format, from+i)))
	}
	return all
}

func TestWordsWithDigitsAreWords(t *testing.T) {
	tasks := numbered("also do PROJ-%d", 101, 5)
	counter := numbered("Please look again (%d).", 1, 40)
	nonce := numbered("Please look again, request 5a1e%08x.", 1, 40)
	other := saidAt("ada", 200*time.Hour, "Now mend the lexer.")
	for name, c := range map[string]struct {
		all  []happened
		want int
	}{
		"five tasks":                            {tasks, 5},
		"the same task twice":                   {append(slices.Clone(tasks), saidAt("ada", 200*time.Hour, "also do PROJ-103")), 5},
		"five tasks, then other words":          {append(slices.Clone(tasks), other), 6},
		"six tasks after other words":           {append([]happened{other}, numbered("also do PROJ-%d", 101, 6)...), 7},
		"a counter":                             {counter, 6},
		"a request id":                          {nonce, 6},
		"a counter, then new words":             {append(slices.Clone(counter), other), 7},
		"a counter, then another user's remark": {append(slices.Clone(counter), saidAt("bob", 200*time.Hour, "Look at 7 again, please.")), 7},
	} {
		if got := typedOf(t, c.all...); got != c.want {
			t.Errorf("%s: %d of %d remarks are typed, want %d", name, got, len(c.all), c.want)
		}
	}
}

// A program may delete each comment before it writes the next one.
func TestDeletedCommentsWordsAreRemembered(t *testing.T) {
	var all []happened
	for i, h := range numbered("Please look again (%d).", 1, 12) {
		f := h.data.(Feedback)
		f.Target = Target{Kind: "issue_comment", ID: int64(i + 1)}
		all = append(all, happened{KindFeedback, f})
		if i < 11 {
			all = append(all, happened{KindWithdrawn, Withdrawn{Seqs: []int64{int64(len(all))}, Reason: "it was deleted"}})
		}
	}
	if got := typedOf(t, all...); got != 0 {
		t.Errorf("%d are typed, want none: the others were deleted", got)
	}
}

// Punctuation, word order and quotations do not make words new.
func TestReorderedOrRequotedWordsAreRepeated(t *testing.T) {
	for name, text := range map[string]string{
		"signs": "Please,  go on - with the PARSER!!", "another order": "with the parser\nplease go on", "a quotation": "> Done after 3 attempts\n\nPlease go on with the parser",
	} {
		if got := typedOf(t, saidAt("ada", 0, "Please go on with the parser."), saidAt("ada", 77*time.Second, text)); got != 1 {
			t.Errorf("%s: %d of 2 remarks are typed, want the first", name, got)
		}
	}
	if got := typedOf(t, saidAt("ada", 0, "Please go on with the parser."), saidAt("ada", 77*time.Second, "> Please go on with the parser.\n\nAnd with the lexer.")); got != 2 {
		t.Errorf("%d of 2 remarks are typed, want both", got)
	}
}

func TestLabelDoesNotMakeWordsRepeated(t *testing.T) {
	label := happened{KindFeedback, Feedback{Source: policy.FromLabel, By: ada, Command: "solve"}}
	order := happened{KindFeedback, Feedback{Source: policy.FromComment, By: ada, Command: "solve"}}
	for name, c := range map[string]struct {
		all  []happened
		want int
	}{"labels": {[]happened{label, label}, 0}, "a user's first command after a label": {[]happened{label, order}, 1}, "the same command again": {[]happened{label, order, order}, 1}} {
		if got := typedOf(t, c.all...); got != c.want {
			t.Errorf("%s: %d are typed, want %d", name, got, c.want)
		}
	}
}

func TestProgramsPaceIsNotTyping(t *testing.T) {
	words := func(i int) string { return fmt.Sprintf("do %c", 'a'+i) }
	var even, uneven, parts, quick, seconds []happened
	for i := range 9 {
		at := time.Duration(i) * 10 * time.Minute
		even = append(even, saidAt("ada", at, words(i)))
		uneven = append(uneven, saidAt("ada", at+time.Duration(i*i)*17*time.Second, words(i)))
		// Two parts of each review at a time, as GitHub delivers them.
		parts = append(parts, saidAt("ada", at, words(i)), saidAt("ada", at+time.Second, words(i+9)))
		// One second after the previous attempt ended, by arrival time.
		quick = append(quick, start(i+1, i+1, 0), end(i+1, edited("c")), happened{KindFeedback, Feedback{Source: policy.FromComment, By: feedback.Actor{Login: "ada"},
			Text: words(i), MadeAt: begin.Add(at + time.Duration(i*i)*17*time.Second)}})
		seconds = append(seconds, saidAt("ada", time.Duration(i)*3*time.Second, words(i)))
	}
	for name, c := range map[string]struct {
		all  []happened
		want int
	}{
		"every ten minutes": {even, 5}, "at irregular times": {uneven, 9}, "in two parts": {parts, 10}, "new words after each attempt": {quick, 9},
		"new words every three seconds": {seconds, 9}, "five every ten minutes": {even[:5], 5}, "another user's remark among them": {append(even, saidAt("bob", 91*time.Minute, "do it")), 6},
	} {
		if got := typedOf(t, c.all...); got != c.want {
			t.Errorf("%s: %d of %d remarks are typed, want %d", name, got, len(c.all), c.want)
		}
	}
}

// Later remarks do not change what counts as typed.
func TestLaterRemarksNeverChangeWhatWasTyped(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var log []happened
		was := map[int64]bool{}
		at := time.Duration(0)
		for range rapid.IntRange(1, 20).Draw(t, "remarks") {
			at += rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour}).Draw(t, "gap")
			text := rapid.SampledFrom([]string{"go on", "do PROJ-%d", "look at %d again", "mend it"}).Draw(t, "text")
			if strings.Contains(text, "%d") {
				text = fmt.Sprintf(text, rapid.IntRange(1, 9).Draw(t, "number"))
			}
			log = append(log, saidAt(rapid.SampledFrom([]string{"ada", "bob"}).Draw(t, "who"), at, text))
			s, err := Fold(logOf(t, log...))
			if err != nil {
				t.Fatal(err)
			}
			typed := s.typed()
			for seq, before := range was {
				if typed[seq] != before {
					t.Fatalf("remark %d was typed %t and is %t after %q", seq, before, typed[seq], text)
				}
			}
			was = typed
		}
	})
}
