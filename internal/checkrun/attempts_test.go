package checkrun

import (
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestEstimatedTokensAreMarked(t *testing.T) {
	for want, used := range map[string]policy.Tokens{
		"":                                   {},
		"1,200 tokens in (0 cached), 34 out": {Input: 1200, Output: 34},
		"1,200 tokens in (0 cached), 34 out (1,000 estimated)": {Input: 1200, Output: 34, Estimated: 1000},
	} {
		if got := tokens(used); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
