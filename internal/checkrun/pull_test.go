package checkrun

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// description draws what a person may have written, markers included.
func description() *rapid.Generator[string] {
	piece := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{
		BlockBegin, BlockEnd, BlockBegin + "old" + BlockEnd, "\n", "\r\n", "\n\n", "A line.\n", "```\n", "<!-- pawl:", "<!--",
	}))
	return rapid.Map(rapid.SliceOfN(piece, 0, 8), func(s []string) string { return strings.Join(s, "") })
}

func TestTheManagedBlockIsReplacedInPlace(t *testing.T) {
	all := cases()
	first, second := all["done"], all["hostile"]
	rapid.Check(t, func(t *rapid.T) {
		prior := description().Draw(t, "prior")
		before, after, found := cutBlock(prior)
		one := PullBody(first, prior)
		if !found && !strings.HasPrefix(one, prior) {
			t.Fatalf("the person's text changed: %q", one)
		}
		if found && (!strings.HasPrefix(one, before+BlockBegin) || !strings.HasSuffix(one, BlockEnd+after)) {
			t.Fatalf("the text around the block changed: %q", one)
		}
		if twice := PullBody(first, one); twice != one {
			t.Fatalf("not stable: %q, then %q", one, twice)
		}
		if back := PullBody(first, PullBody(second, one)); back != one {
			t.Fatalf("another block left traces: %q, then %q", one, back)
		}
	})
}

func TestALongDescriptionIsLeftAlone(t *testing.T) {
	prior := strings.Repeat("a person's words ", 3_530)
	if got := PullBody(base(), prior); got != prior {
		t.Errorf("the description went from %d to %d bytes", len(prior), len(got))
	}
	prior = prior[:55_000]
	got := PullBody(hostile(), prior)
	if !strings.HasPrefix(got, prior) || !strings.HasSuffix(got, BlockEnd) || len(got) > maxBytes {
		t.Errorf("%d bytes became %d", len(prior), len(got))
	}
}

func TestTheBlockDoesNotDependOnTheTime(t *testing.T) {
	f := cases()["waiting-for-reset"]
	then := PullBody(f, "")
	f.Now = f.Now.AddDate(0, 0, 3)
	if now := PullBody(f, ""); now != then {
		t.Errorf("got %q, then %q", then, now)
	}
}
