package feedback

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestAgentsRemarkIsRecognisedByItsWords(t *testing.T) {
	word := rapid.StringMatching(`[ab]{1,3}`)
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.SliceOfN(word, 4, 40).Draw(t, "text")
		from := rapid.IntRange(0, len(text)-4).Draw(t, "from")
		remark := text[from:rapid.IntRange(from+4, len(text)).Draw(t, "to")]
		other := append([]string{}, remark...)
		other[rapid.IntRange(0, len(other)-1).Draw(t, "which")] = "person"
		var w, read Authored
		w.Add(strings.Join(text, `\n`), false)
		read.Read(w.Fresh())
		for _, a := range []*Authored{&w, &read} {
			if !a.Wrote("> " + strings.Join(remark, ", ")) {
				t.Fatalf("%q is not found", remark)
			}
			if a.Wrote(strings.Join(other, " ")) || a.Wrote(strings.Join(remark, " ")+" person") {
				t.Fatalf("%q with another word is found", other)
			}
		}
	})
}

func TestShortRemarkMustBePosted(t *testing.T) {
	var w Authored
	if w.Add("I am done with the comments.", false) {
		t.Error("text that was not posted counts as posted")
	}
	if w.Wrote("Done with") || w.Wrote("comments") || !w.Wrote("done with the comments") {
		t.Error("want at least four consecutive words of the unposted text")
	}
	if !w.Add("gh pr comment 7 --body 'Looks good'", true) {
		t.Error("a gh command does not count as posting")
	}
	if !w.Wrote("Looks good!") || w.Wrote("good looks") || w.Wrote("") || w.Wrote("\U0001F44D") {
		t.Error("want the posted words in order, and no remark without words")
	}
}

func TestLoggedRunsAreNotFresh(t *testing.T) {
	var w, read Authored
	w.Add("one two three four five", false)
	first := w.Fresh()
	w.Logged()
	w.Add("two three four five six", false)
	second := w.Fresh()
	if len(first) != 2*4 || len(second) != 4 {
		t.Errorf("%d and %d bytes, want two runs of words, then one", len(first), len(second))
	}
	read.Read(first)
	read.Read(append(second, 1, 2)) // the last number is incomplete
	if !read.Wrote("one two three four five six") {
		t.Error("text that was logged in two parts is not found")
	}
}

func TestStoredAgentTextsAreLimited(t *testing.T) {
	var w Authored
	var long strings.Builder
	for i := range 4 * maxRuns {
		fmt.Fprintf(&long, "w%d ", i)
	}
	w.Add(long.String(), false)
	if got := len(w.Fresh()) / 4; got != maxRuns {
		t.Errorf("%d runs are stored, want %d", got, maxRuns)
	}
	w.Add("gh issue comment 7 --body 'posted after all that'", true)
	if !w.Wrote("Posted after all that.") {
		t.Error("text posted after long texts is not stored")
	}
	w.Add("gh issue comment 7 --body '"+long.String()+"'", true)
	if got := len(w.Fresh()) / 4; got != 2*maxRuns {
		t.Errorf("%d runs of posted text are stored, want %d", got, 2*maxRuns)
	}
	if remark := strings.Repeat("posted after all that ", 4<<10); w.Wrote(remark) {
		t.Error("a remark with the words in another order is found")
	}
}

func TestRepetitiveTextsAreLimited(t *testing.T) {
	w := Authored{size: maxRuns * maxPerRun}
	w.Add("these words are said after that", false)
	if w.Add("gh issue comment 7 --body 'and these are posted'", true); w.Wrote("these words are said") || !w.Wrote("and these are posted") {
		t.Error("want text posted after long texts, and no unposted text")
	}
}

func TestPostingIsRecognisedInAnyCase(t *testing.T) {
	for text, want := range map[string]bool{
		"gh issue comment 7": true, "GH pr view": true, "/usr/bin/CURL -d @body": true, "add_issue_Comment": true, "post-Comments": true, "https://api.GitHub.com": true,
		"": false, "ghost": false, "curly": false, "commented": false, "echo done": false,
	} {
		if Posts(text) != want {
			t.Errorf("%q: %v, want %v", text, !want, want)
		}
	}
}

func TestEveryPartOfAnEditMustMatch(t *testing.T) {
	var a, b Authored
	a.Add("the first of these parts", false)
	b.Add("the second of these parts", false)
	for want, parts := range map[bool][][]string{
		true:  {{"the first of these parts"}, {"the second of these parts", "the first of these"}},
		false: {nil, {""}, {"the first of these parts", "and one of a person"}},
	} {
		for _, p := range parts {
			if WroteAll(p, a, b) != want {
				t.Errorf("%q: %v, want %v", p, !want, want)
			}
		}
	}
}
