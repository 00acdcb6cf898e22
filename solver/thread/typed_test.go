package thread

import (
	"fmt"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
)

// saidAt is a comment that was made at a time.
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

func TestWordsThatDifferInNumbersAloneAreSaidAgain(t *testing.T) {
	got := typedOf(t, saidAt("ada", 0, "Please look again (1)."), saidAt("ada", 77*time.Second, "Please look again (2)."),
		saidAt("bob", 200*time.Second, "please look  again req_5a1e"), saidAt("ada", time.Hour, "Please look again at line 12."))
	if got != 2 {
		t.Errorf("%d of 4 remarks are typed, want the first and the one with other words", got)
	}
}

// Nor do signs, their order and what is quoted beside them.
func TestWordsInAnotherOrderOrBesideAnotherQuotationAreSaidAgain(t *testing.T) {
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

func TestALabelSaysNothingThatAPersonWouldSayAgain(t *testing.T) {
	label := happened{KindFeedback, Feedback{Source: policy.FromLabel, By: ada, Command: "solve"}}
	order := happened{KindFeedback, Feedback{Source: policy.FromComment, By: ada, Command: "solve"}}
	for name, c := range map[string]struct {
		all  []happened
		want int
	}{"labels": {[]happened{label, label}, 0}, "a person's first order after a label": {[]happened{label, order}, 1}, "and again": {[]happened{label, order, order}, 1}} {
		if got := typedOf(t, c.all...); got != c.want {
			t.Errorf("%s: %d are typed, want %d", name, got, c.want)
		}
	}
}

func TestWhatAPersonsLoginSaysAtAProgramsPaceIsNotTyped(t *testing.T) {
	words := func(i int) string { return fmt.Sprintf("do %c", 'a'+i) }
	var even, uneven, parts, quick, during []happened
	for i := range 6 {
		at := time.Duration(i) * 10 * time.Minute
		even = append(even, saidAt("ada", at, words(i)))
		uneven = append(uneven, saidAt("ada", at+time.Duration(i*i)*17*time.Second, words(i)))
		// Two parts of one review at a time, as GitHub tells them.
		parts = append(parts, saidAt("ada", at, words(i)), saidAt("ada", at+time.Second, words(i+6)))
		// A second after the attempt before it ended, by the time at which it came.
		quick = append(quick, start(i+1, i+1, 0), end(i+1, edited("c")), happened{KindFeedback, Feedback{Source: policy.FromComment, By: feedback.Actor{Login: "ada"},
			Text: words(i), MadeAt: begin.Add(at + time.Duration(i*i)*17*time.Second)}})
		during = append(during, start(i+1, i+1, 0), saidAt("ada", at+time.Duration(i*i)*17*time.Second, words(i)), end(i+1, edited("c")))
	}
	for name, c := range map[string]struct {
		all  []happened
		want int
	}{
		"every ten minutes": {even, 0}, "at other times": {uneven, 6}, "in two parts": {parts, 0}, "after each attempt": {quick, 0},
		"during each attempt": {during, 6}, "five of them": {even[:5], 5}, "and another person": {append(even, saidAt("bob", 61*time.Minute, "do it")), 1},
	} {
		if got := typedOf(t, c.all...); got != c.want {
			t.Errorf("%s: %d of %d remarks are typed, want %d", name, got, len(c.all), c.want)
		}
	}
}
