package agent

import (
	"bytes"
	"io"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func collect(t testing.TB, r io.Reader) []string {
	t.Helper()
	var lines []string
	if err := readLines(r, func(line []byte) { lines = append(lines, string(line)) }); err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestLinesOfAnyLengthAndContentAreRead(t *testing.T) {
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
		h := headTail{headMax: rapid.IntRange(0, 20).Draw(t, "head"), tailMax: rapid.IntRange(0, 20).Draw(t, "tail")}
		var all []byte
		for range rapid.IntRange(0, 8).Draw(t, "writes") {
			p := rapid.SliceOfN(rapid.Byte(), 0, 30).Draw(t, "p")
			all = append(all, p...)
			h.Write(p)
		}
		head := all[:min(len(all), h.headMax)]
		tail := all[max(len(head), len(all)-h.tailMax):]
		if !bytes.Equal(h.head, head) || !bytes.Equal(h.end(), tail) || h.missing() != int64(len(all)-len(head)-len(tail)) {
			t.Fatalf("head %q tail %q missing %d of %q", h.head, h.end(), h.missing(), all)
		}
	})
}

func TestALongTranscriptIsCutInTheMiddleWithANote(t *testing.T) {
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

// endless repeats a text up to a size.
type endless struct {
	text []byte
	left int64
	at   int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left <= 0 {
		return 0, io.EOF
	}
	n := copy(p[:min(int64(len(p)), e.left)], e.text[e.at:])
	e.at, e.left = (e.at+n)%len(e.text), e.left-int64(n)
	return n, nil
}

func codexOutput(outputBytes int) []byte {
	return []byte(`{"type":"item.completed","item":{"id":"item_0","type":"command_execution","command":"/bin/bash -lc 'seq 1 4000'","aggregated_output":"` +
		strings.Repeat(`line 7: the quick brown \"fox\" jumps\n`, outputBytes/38) + `","exit_code":0,"status":"completed"}}` + "\n")
}

// TestAGigabyteOfOutputCostsLittleMemory reads 1 GB in lines of 3 MB and as one
// line without an end, and counts what was allocated in all.
func TestAGigabyteOfOutputCostsLittleMemory(t *testing.T) {
	plain, err := For("command", StreamPlain)
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		text    []byte
		adapter Adapter
	}{
		"codex lines of 3 MB":   {codexOutput(3 << 20), codexAdapter()},
		"codex lines of 300 kB": {codexOutput(300 << 10), codexAdapter()},
		"one endless line":      {[]byte("x"), codexAdapter()},
		"plain":                 {[]byte("a line of a plain agent\n"), plain},
	} {
		t.Run(name, func(t *testing.T) {
			text := c.text
			for len(text) < 64<<10 {
				text = append(text, text...)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := Inspect(&endless{text: text, left: 1 << 30}, c.adapter, InspectOptions{})
			runtime.ReadMemStats(&after)
			if err != nil || got.OutputBytes != 1<<30 {
				t.Errorf("%d bytes, error %v", got.OutputBytes, err)
			}
			if used := after.TotalAlloc - before.TotalAlloc; used > 48<<20 {
				t.Errorf("%d MB were allocated", used>>20)
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	for name, size := range map[string]int{"lines of 300 B": 76, "lines of 4 kB": 4 << 10, "lines of 300 kB": 300 << 10} {
		b.Run(name, func(b *testing.B) {
			text := codexOutput(size)
			for len(text) < 1<<20 {
				text = append(text, text...)
			}
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Inspect(bytes.NewReader(text), codexAdapter(), InspectOptions{}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
