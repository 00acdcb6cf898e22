package gateway

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func TestEventsAreFoundHoweverTheyArrive(t *testing.T) {
	stream := "event: a\ndata: {\"x\":1}\n\n: comment\n\ndata: one\r\ndata:two\r\n\r\n\ndata: [DONE]"
	want := []string{`{"x":1}`, "", "one\ntwo", "", "[DONE]"}
	for size := 1; size <= len(stream); size++ {
		var got []string
		var s splitter
		see := func(e event) { got = append(got, string(e.data)) }
		for rest := []byte(stream); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			s.feed(rest[:min(size, len(rest))], see)
		}
		s.flush(see)
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("in pieces of %d: %q", size, got)
		}
	}
}

func TestAnEventThatIsTooLongPassesUnread(t *testing.T) {
	long := "data: " + strings.Repeat("x", 100) + "\ndata: y\n\n"
	stream := long + "data: z\n\n"
	for size := 1; size <= len(stream); size++ {
		var raw, data string
		s := splitter{max: 20}
		see := func(e event) { raw += string(e.raw); data += string(e.data) }
		for rest := []byte(stream); len(rest) > 0; rest = rest[min(size, len(rest)):] {
			s.feed(rest[:min(size, len(rest))], see)
		}
		s.flush(see)
		if raw != stream || !strings.HasSuffix(data, "z") || size < 10 && data != "z" {
			t.Fatalf("in pieces of %d: %q, data %q", size, raw, data)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add([]byte("event: a\ndata: {}\n\ndata: [DONE]\n\n"), uint8(3), uint8(20))
	f.Add([]byte("\r\n\r\n\n\ndata:\r\n\r"), uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, stream []byte, size, most uint8) {
		var raw []byte
		s := splitter{max: int(most)}
		see := func(e event) {
			raw = append(raw, e.raw...)
			if len(e.data) > len(e.raw) {
				t.Errorf("%q has the data %q", e.raw, e.data)
			}
		}
		for rest := stream; len(rest) > 0; {
			n := min(int(size)+1, len(rest))
			s.feed(rest[:n], see)
			if most > 0 && len(s.buf) > int(most) {
				t.Fatalf("%d bytes are kept, more than %d", len(s.buf), most)
			}
			rest = rest[n:]
		}
		s.flush(see)
		if !bytes.Equal(raw, stream) {
			t.Errorf("%q became %q", stream, raw)
		}
	})
}

func FuzzReaders(f *testing.F) {
	for _, seed := range []string{okMessage, `{"type":"response.completed",` + responsesCompleted + `}`, `[{"usageMetadata":{"promptTokenCount":1e30}}]`, `{"error":{"code":429,"details":[{"retryDelay":"1d"}]}}`, "[DONE]"} {
		f.Add([]byte(seed), 429)
	}
	f.Fuzz(func(t *testing.T, data []byte, status int) {
		for _, kind := range []callKind{responses, chat, messages, generate} {
			var a answer
			for range 3 {
				readerOf(kind)(data, &a)
			}
			a.settle(len(data))
			if tk := a.tokens; tk.input < 0 || tk.cached < 0 || tk.output < 0 || tk.input > 3*maxCount || tk.output > 3*maxCount {
				t.Errorf("%s: %+v", kind, tk)
			}
			if a.failure != nil {
				readFailure(0, nil, a.failure).limit(testNow())
			}
		}
		l, ok := readFailure(status, nil, data).limit(testNow())
		if ok && !l.ResetsAt.IsZero() && (l.ResetsAt.Before(testNow()) || l.ResetsAt.After(testNow().Add(latest))) {
			t.Errorf("a reset that cannot be: %+v", l)
		}
	})
}

func TestTheRedactorMasksTheKeyHoweverItArrives(t *testing.T) {
	const key = "abcabcabd"
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcd\n")), 0, 200, -1).Draw(t, "text")
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + key + text[at:]
		}
		got, err := io.ReadAll(newRedactor(pieces(t, text), key))
		if want := strings.ReplaceAll(text, key, "*********"); err != nil || string(got) != want {
			t.Fatalf("%q became %q, want %q, error %v", text, got, want, err)
		}
	})
}

// pieces reads a text in pieces of random sizes.
func pieces(t *rapid.T, text string) io.Reader {
	var parts []io.Reader
	for rest := text; rest != ""; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
		parts = append(parts, strings.NewReader(rest[:n]))
		rest = rest[n:]
	}
	return io.MultiReader(parts...)
}

func TestTheRedactorPassesErrorsOnAndHoldsBackNoWholeLine(t *testing.T) {
	broken := errors.New("broken")
	got, err := io.ReadAll(newRedactor(io.MultiReader(strings.NewReader("sk-prov"), iotest.ErrReader(broken)), testKey))
	if string(got) != "sk-prov" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("data: sk-\n\n"))
	buf := make([]byte, 100)
	if n, err := newRedactor(r, testKey).Read(buf); err != nil || string(buf[:n]) != "data: sk-\n\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}

func TestAnObjectIsScannedAsEncodingJSONReadsIt(t *testing.T) {
	for _, text := range []string{
		`{}`, ` { "a" : 1 , "b":[{"c":"}\\\""},"]"],"d":null,"e":-1.5e3,"f":"\\","a":2} `, `{"mod\u0065l":"x","":{}}`,
	} {
		if diff := cmp.Diff(objectOf([]byte(text)), scanObject([]byte(text))); diff != "" {
			t.Errorf("%s: %s", text, diff)
		}
	}
	for _, text := range []string{``, `null`, `[]`, `"a"`, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1}}`, `{"a":tru}`, `{"a":"}`, `{a:1}`, `{"a":]}`, `{,"a":1}`} {
		if got := scanObject([]byte(text)); got != nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

func TestAFieldIsFoundHoweverItsNameIsWritten(t *testing.T) {
	for text, want := range map[string]bool{
		`[{"a":1},{"tools":[]}]`:                 true,
		`[{"a":{"\u0074ools":[]}}]`:              true,
		`[{"\u0074\u006f\u006F\u006c\u0073":1}]`: true,
		`[{"a":"tools"}]`:                        true, // may be
		`[{"a":"\u001b[0m"}]`:                    true, // may be
		`[{"a":"-\u001b[0m"}]`:                   false,
		`[{"a":"\\u001b"}]`:                      true, // may be
		`[{"a":"\"tools\":[]"},{"tool":1}]`:      false,
		`[{"Tools":[],"toolsets":1,"":2}]`:       false,
		`[{"a":"tools":[`:                        true, // broken
		``:                                       true,
	} {
		if got := mayName([]byte(text), "tools"); got != want {
			t.Errorf("%s: %v", text, got)
		}
	}
}

// Property: a name is seen in whatever way its letters are written.
func TestANameIsSeenInEverySpelling(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spelled := ""
		for _, c := range "tools" {
			spelled += rapid.SampledFrom([]string{string(c), fmt.Sprintf(`\u%04x`, c), fmt.Sprintf(`\u%04X`, c)}).Draw(t, "letter")
		}
		text := fmt.Sprintf(`{"input":[{"x":"\\\"","%s":[1]}],"x":["%s-"]}`, spelled, spelled)
		f, within := scanNamed([]byte(text), "tools")
		if objectOf(listOf(f["input"])[0])["tools"] == nil || !within["input"] {
			t.Errorf("%s: %v", text, within)
		}
	})
}

func FuzzScanObject(f *testing.F) {
	f.Add([]byte(`{"a":[{"b":"\\\""}],"c":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		got := scanObject(text)
		if want := objectOf(text); want != nil {
			for name := range want {
				if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
					return // encoding/json repairs names that are not UTF-8
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%q: %s", text, diff)
			}
		}
	})
}
