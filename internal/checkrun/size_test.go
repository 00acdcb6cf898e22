package checkrun

import (
	"fmt"
	"strings"
	"testing"
)

func TestHugeTextsStayWithinTheLimit(t *testing.T) {
	for name, unit := range map[string]string{
		"lines": "all work and no play\n", "one line": "x", "wide runes": "語", "backticks": "`", "fences": "```\n", "newlines": "\n", "escapes": "\x1b[0m",
	} {
		t.Run(name, func(t *testing.T) {
			big := strings.Repeat(unit, 1_000_000/len(unit))
			inspect(t, everywhere(big, big, 2, 60, 0.5, 1))
		})
	}
}

func TestLongOutputKeepsItsEnd(t *testing.T) {
	f := cases()["verify-failed"]
	var b strings.Builder
	for i := range 20_000 {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	b.WriteString("FAIL: the reason")
	f.Attempts[2].Verify[0].Output = b.String()
	summary := Checks(f)[0].Summary
	for _, want := range []string{"line 0\n", "\n[…]\n", "FAIL: the reason\n```"} {
		if !strings.Contains(summary, want) {
			t.Errorf("the summary lacks %q", want)
		}
	}
}

func TestTableKeepsTheNewestAttempts(t *testing.T) {
	summary := Checks(cases()["restart-limit"])[0].Summary
	for want, there := range map[string]bool{"| 51 |": true, "| 40 |": true, "| 39 |": false,
		"…and 40 earlier attempts": true} {
		if strings.Contains(summary, want) != there {
			t.Errorf("%q in the summary: want %t", want, there)
		}
	}
}

func TestLongTextIsCutBetweenParts(t *testing.T) {
	p := &page{}
	p.sentence("first")
	p.fold("second", strings.Repeat("x", 500))
	p.sentence("third")
	if got := p.fitIn(200); !strings.HasPrefix(got, "first\n\nThe rest is left out") || len(got) > 200 {
		t.Errorf("got %q", got)
	}
	for max := range 700 {
		if got := p.fitIn(max); len(got) > max || len(flaws(got)) > 0 {
			t.Fatalf("%d bytes: %d, %v", max, len(got), flaws(got))
		}
	}
}

func TestPullBodyDoesNotDependOnTheTime(t *testing.T) {
	f := cases()["waiting-for-reset"]
	then := PullBody(f)
	f.Now = f.Now.AddDate(0, 0, 3)
	if now := PullBody(f); now != then {
		t.Errorf("got %q, then %q", then, now)
	}
}
