package policy

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy/simhash"
)

// patch returns a diff that compares two texts line by line.
func patch(before, after []string) string {
	var b strings.Builder
	b.WriteString("diff --git a/guide.md b/guide.md\n--- a/guide.md\n+++ b/guide.md\n@@ -1 +1 @@\n")
	for i := range max(len(before), len(after)) {
		was, is := at(before, i), at(after, i)
		if was == is {
			fmt.Fprintln(&b, " "+is)
			continue
		}
		if was != "" {
			fmt.Fprintln(&b, "-"+was)
		}
		if is != "" {
			fmt.Fprintln(&b, "+"+is)
		}
	}
	return b.String()
}

func at(lines []string, i int) string {
	if i < len(lines) {
		return lines[i]
	}
	return ""
}

// guide returns a text with this number of lines. Each line has words of its own.
func guide(lines int) (text []string) {
	for i := range lines {
		text = append(text, fmt.Sprintf("step %d: open the %x, then turn the %x to the left", i, Hash(fmt.Sprint("a", i))>>48, Hash(fmt.Sprint("b", i))>>48))
	}
	return text
}

// with returns the text with one changed line.
func with(text []string, line int, to string) []string {
	text = slices.Clone(text)
	text[line] = to
	return text
}

// delivered returns an attempt for each text. Each attempt follows new feedback and delivers its text.
func delivered(texts [][]string) (all []Attempt) {
	var before []string
	for i, text := range texts {
		a := finished()
		a.N, a.Run, a.NewInput = i+1, i+1, true
		a.Put, a.Took = ChangedLines(patch(before, text))
		a.Whole = simhash.Fingerprint(patch(nil, text))
		all = append(all, a)
		before = text
	}
	return all
}

func TestSimilarWorkAfterFeedbackIsStagnation(t *testing.T) {
	large := guide(60)
	for _, tc := range []struct {
		name  string
		round func(before []string, i int) []string
		want  bool
	}{
		{"one word changes each time", func(_ []string, i int) []string {
			return with(large, 20, fmt.Sprint("close the lid, attempt ", string(rune('a'+i))))
		}, true},
		{"another line changes each time, and the last one is restored", func(_ []string, i int) []string {
			return with(large, 5*i, "this line was reworded")
		}, true},
		{"a word changes back and forth", func(_ []string, i int) []string {
			return with(large, 20, []string{"close the lid", "shut the lid"}[i%2])
		}, true},
		{"a paragraph is reworded", func(_ []string, i int) []string {
			text := large
			for n := range 4 {
				text = with(text, 20+n, fmt.Sprintf("wording %c of sentence %d", 'a'+i, n))
			}
			return text
		}, true},
		{"two requests for the same line", func(before []string, i int) []string {
			return with(before, []int{0, 3, 3, 9, 15, 21}[i], fmt.Sprintf("step that request %d asked for", i))
		}, false},
		{"typos in different places", func(before []string, i int) []string {
			return with(before, 7*i, fmt.Sprintf("step %d without its typo", 7*i))
		}, false},
		{"one more section per request", func(before []string, i int) []string {
			return append(slices.Clone(before), fmt.Sprintf("section %d is new", i), fmt.Sprintf("it explains part %d", i))
		}, false},
		{"one more line per request, with its number in the title", func(before []string, i int) []string {
			return append(with(before, 0, fmt.Sprintf("guide of version %d", i)), fmt.Sprintf("note %d", i))
		}, false},
		{"different work each time", func(_ []string, i int) []string {
			var text []string
			for n := range 60 {
				text = append(text, fmt.Sprintf("%x %x %x", Hash(fmt.Sprint(i, n))>>40, Hash(fmt.Sprint(n, i))>>40, i*n))
			}
			return text
		}, false},
	} {
		texts := [][]string{large}
		for i := range 5 {
			texts = append(texts, tc.round(texts[i], i+1))
		}
		all := delivered(texts)
		v := Stagnation(all, len(all), Defaults())
		if v.Escalated != tc.want {
			t.Errorf("%s: %+v, want escalated %t", tc.name, v, tc.want)
		}
		if early := Stagnation(all[:3], 3, Defaults()); early.Escalated {
			t.Errorf("%s: %+v after two rounds of feedback", tc.name, early)
		}
	}
}

func TestNewWordsTryAnotherBackend(t *testing.T) {
	large := guide(60)
	var texts [][]string
	for i := range 5 {
		texts = append(texts, with(large, 20, fmt.Sprint("close the lid, attempt ", string(rune('a'+i)))))
	}
	stuck := given(delivered(texts)...)
	asked := func(command string, again bool) Facts {
		f := stuck.asked(command)
		f.Run++
		f.SaidAgain = again
		return f
	}
	decides(t, asked("", false), Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true})
	decides(t, asked("solve", false), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"})
	stuck.Attempts[4].Decision.Different = true
	decides(t, asked("", false), Decision{Action: DoAttempt, Rule: "stagnation", Backend: "claude", Different: true})
	decides(t, asked("", true), Decision{Action: DoStop, Rule: "stagnation"})
}

func TestSmallPatchesHaveAHigherThreshold(t *testing.T) {
	p := simhash.Print(0x123456789abcdef1)
	for _, tc := range []struct {
		words, differ int
		want          bool
	}{
		{79, 3, true},
		{79, 4, false},
		{80, 9, true},
		{80, 10, false},
		{0, 9, true}, // a receipt of an earlier version of Pawl
	} {
		a, b := finished(), finished()
		a.Change, b.Change = p, flipped(p, tc.differ)
		a.ChangeWords, b.ChangeWords = 500, tc.words
		v := Stagnation([]Attempt{a, b}, 0, Defaults())
		if (v.Similar == 1) != tc.want {
			t.Errorf("%d words, %d bits differ: %+v, want similar %t", tc.words, tc.differ, v, tc.want)
		}
	}
	limits := Defaults()
	limits.Stagnation.Similarity = 0.97
	if got := limits.Stagnation.forPatches(10); got != 0.97 {
		t.Errorf("similar from %v, want the operator's value", got)
	}
}
