package agent

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func collect(t testing.TB, r io.Reader) []string {
	t.Helper()
	var lines []string
	if err := ReadLines(r, func(line []byte) { lines = append(lines, string(line)) }); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLinesOfAnyLengthAreRead(t *testing.T) {
	long := strings.Repeat("x", maxLine+10)
	for _, c := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a", []string{"a"}},
		{"a\nb", []string{"a", "b"}},
		{"a\r\n\nb\n", []string{"a", "", "b"}},
		{"\x00\xff\xfe\n", []string{"\x00\xff\xfe"}},
		{long + "\nb\n", []string{long[:maxLine], "b"}},
		{long, []string{long[:maxLine]}},
		{"a\n" + strings.Repeat(long, 3) + "\nb", []string{"a", long[:maxLine], "b"}},
	} {
		got := collect(t, strings.NewReader(c.in))
		if strings.Join(got, "|") != strings.Join(c.want, "|") || len(got) != len(c.want) {
			t.Errorf("%.20q…: %d lines, want %d", c.in, len(got), len(c.want))
		}
	}
}

func FuzzReadLines(f *testing.F) {
	f.Add([]byte("a\nb\r\n\x00"))
	f.Fuzz(func(t *testing.T, in []byte) {
		whole := collect(t, bytes.NewReader(in))
		piecewise := collect(t, io.MultiReader(bytes.NewReader(in[:len(in)/2]), bytes.NewReader(in[len(in)/2:])))
		if strings.Join(whole, "\n") != strings.Join(piecewise, "\n") {
			t.Errorf("%q reads as %q and piecewise as %q", in, whole, piecewise)
		}
	})
}

func TestHeadAndTailAreKept(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		head, tail := rapid.IntRange(0, 20).Draw(t, "head"), rapid.IntRange(0, 20).Draw(t, "tail")
		k := newHeadTail(int64(head), tail)
		var all []byte
		for range rapid.IntRange(0, 8).Draw(t, "writes") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "p")
			all = append(all, p...)
			k.Write(p)
		}
		want := string(all)
		if missing := len(all) - head - tail; missing > 0 {
			want = fmt.Sprintf("%s\n[pawl: %d bytes are left out here]\n%s", all[:head], missing, all[len(all)-tail:])
		}
		if got := k.String(); got != want {
			t.Fatalf("%q of %q, want %q", got, all, want)
		}
	})
}

func TestLongTranscriptIsCutInTheMiddleWithANote(t *testing.T) {
	var b bytes.Buffer
	tr := newTranscript(&b, 100)
	for range 100 {
		io.WriteString(tr, "0123456789")
	}
	if err := tr.close(); err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(b.String(), "\n[pawl: 900 bytes are left out here; the limit of a transcript is 100 bytes]\n")
	if !ok || len(head)+len(rest) != 100 || !strings.HasSuffix(rest, "9") {
		t.Errorf("transcript %q", b.String())
	}
	b.Reset()
	tr = newTranscript(&b, 100)
	io.WriteString(tr, strings.Repeat("y", 100))
	if err := tr.close(); err != nil || b.Len() != 100 {
		t.Errorf("a transcript within the limit has %d bytes, error %v", b.Len(), err)
	}
}
