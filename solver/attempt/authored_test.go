package attempt

import (
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/pawlbot/pawl/policy/feedback"
)

func TestBlankOutputOfAPlainAgentIsNotKept(t *testing.T) {
	w := plainTexts{authored: func(text string, _ bool) { t.Errorf("%q was authored", text) }}
	for _, blank := range []string{" \n", "\r\n\n", strings.Repeat(" ", 4096)} {
		for range 100 {
			if _, err := w.Write([]byte(blank)); err != nil {
				t.Fatal(err)
			}
		}
		if len(w.line) > 2*maxAuthoredLine || strings.HasSuffix(blank, "\n") && len(w.line) > 0 {
			t.Errorf("%.10q: %d bytes are kept", blank, len(w.line))
		}
	}
}

func TestEveryLineOfAPlainAgentIsItsOwn(t *testing.T) {
	for name, reader := range map[string]func(io.Reader) io.Reader{"at once": func(r io.Reader) io.Reader { return r }, "byte by byte": iotest.OneByteReader} {
		var wrote feedback.Authored
		w := plainTexts{authored: func(text string, ran bool) { wrote.Add(text, ran) }}
		out := "starting\nposting: I fixed the parser.\n\n\nIt has tests now.\nposted a comment\n" + strings.Repeat("x", 2*maxAuthoredLine) + "\nunfinished"
		if _, err := io.Copy(&w, reader(strings.NewReader(out))); err != nil {
			t.Fatal(err)
		}
		for remark, want := range map[string]bool{
			"I fixed the parser.\n\nIt has tests now.": true,
			"I fixed the parser. It has no tests now.": false,
			"posted a comment":                         true,
			"starting":                                 false,
			"unfinished":                               false,
		} {
			if got := wrote.Wrote(remark); got != want {
				t.Errorf("%s: %q: %v", name, remark, got)
			}
		}
	}
}
