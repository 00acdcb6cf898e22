package solver

import (
	"testing"

	"github.com/pawlbot/pawl/internal/forge"
)

func TestRemarkNamesLinesAndSuggestions(t *testing.T) {
	for want, in := range map[string]struct {
		thread forge.ReviewThread
		words  string
	}{
		"a.go:7, on the line as it is now":                                                   {forge.ReviewThread{Path: "a.go", Line: 7, Was: 5}, "why not ```suggestion```?"},
		"a.go:5, on the line as it was then":                                                 {forge.ReviewThread{Path: "a.go", Was: 5, StartLine: 2}, ""},
		"a.go:3-7, on the lines as they are now":                                             {forge.ReviewThread{Path: "a.go", Line: 7, StartLine: 3}, ""},
		"a.go:7, on the line as it is now, before the change":                                {forge.ReviewThread{Path: "a.go", Line: 7, StartLine: 7, Side: "LEFT"}, ""},
		"a.go:7, on the line as it is now, with a suggestion of what to write there instead": {forge.ReviewThread{Path: "a.go", Line: 7}, "Better:\r\n```suggestion\r\nx := 1\r\n```"},
	} {
		if got := onLines(in.thread, in.words); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
