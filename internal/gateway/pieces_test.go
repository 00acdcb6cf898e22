package gateway

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlbot/pawl/internal/limit"
)

// pieces returns a text in reads of size bytes.
type pieces struct {
	rest []byte
	size int
}

func (p *pieces) Read(to []byte) (int, error) {
	if len(p.rest) == 0 {
		return 0, io.EOF
	}
	n := copy(to, p.rest[:min(p.size, len(p.rest))])
	p.rest = p.rest[n:]
	return n, nil
}

// leastBuffer is bufio's smallest buffer, in bytes.
const leastBuffer = 16

// split passes each event of a stream, which arrives in pieces, to see.
func split(t *testing.T, stream string, size, most int, see func(raw, data []byte)) {
	t.Helper()
	s := splitter{from: bufio.NewReaderSize(&pieces{[]byte(stream), size}, leastBuffer), max: most}
	for {
		raw, data, err := s.next()
		if len(raw) > 0 {
			see(raw, data)
		}
		if err == io.EOF {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func TestEventsAreSplitInAnyPieces(t *testing.T) {
	stream := "event: a\ndata: {\"x\":1}\n\n: comment\n\ndata: one\r\ndata:two\r\n\r\n\ndata: [DONE]"
	want := []string{`{"x":1}`, "", "one\ntwo", "", "[DONE]"}
	for size := 1; size <= len(stream); size++ {
		var got []string
		split(t, stream, size, maxEvent, func(_, data []byte) { got = append(got, string(data)) })
		if strings.Join(got, "|") != strings.Join(want, "|") {
			t.Fatalf("in pieces of %d: %q", size, got)
		}
	}
}

func TestTooLongEventPassesUnread(t *testing.T) {
	long := "data: " + strings.Repeat("x", 100) + "\ndata: y\n\n"
	stream := long + "data: z\n\n"
	for size := 1; size <= len(stream); size++ {
		var raw, data string
		split(t, stream, size, 20, func(r, d []byte) { raw += string(r); data += string(d) })
		if raw != stream || data != "z" {
			t.Fatalf("in pieces of %d: %q, data %q", size, raw, data)
		}
	}
}

func FuzzSplitter(f *testing.F) {
	f.Add("event: a\ndata: {}\n\ndata: [DONE]\n\n", uint8(3), uint8(20))
	f.Add("\r\n\r\n\n\ndata:\r\n\r", uint8(1), uint8(1))
	f.Fuzz(func(t *testing.T, stream string, size, most uint8) {
		var all []byte
		split(t, stream, int(size)+1, int(most), func(raw, data []byte) {
			all = append(all, raw...)
			if len(data) > len(raw) {
				t.Errorf("%q has the data %q", raw, data)
			}
			if len(raw) > int(most)+leastBuffer {
				t.Fatalf("%d bytes are buffered, more than %d", len(raw), most)
			}
		})
		if string(all) != stream {
			t.Errorf("%q became %q", stream, all)
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
			if e, ok := parsed(string(data)); ok {
				for range 3 {
					forms[kind].read(e, &a)
				}
			}
			a.settle(len(data))
			if tk := a.tokens; tk.input < 0 || tk.cached < 0 || tk.output < 0 || tk.input > 3*maxCount || tk.output > 3*maxCount {
				t.Errorf("%s: %+v", kind, tk)
			}
			if a.failure != nil {
				readAnswer(0, nil, string(a.failure))
			}
		}
		l, ok := readAnswer(status, nil, string(data))
		if ok && !l.ResetsAt.IsZero() && (l.ResetsAt.Before(testNow()) || l.ResetsAt.After(testNow().Add(limit.Latest))) {
			t.Errorf("an impossible reset: %+v", l)
		}
	})
}

func TestInvalidJSONIsNotRead(t *testing.T) {
	for _, text := range []string{
		``, `{`, `{"a"}`, `{"a":}`, `{"a":1,}`, `{"a":1 "b":2}`, `{"a":1}}`, `{"a":tru}`, `{"a":"}`, `{a:1}`, `{"a":]}`, `{,"a":1}`, `{'a':1}`, `{"a":[{b:1}]}`,
		strings.Repeat("[", manyBrackets+1), strings.Repeat("[", 1<<20) + strings.Repeat("]", 1<<20), // too deep for a stack
	} {
		if got, ok := parsed(text); ok {
			t.Errorf("%.40s: %.40s", text, got.Raw)
		}
	}
	if _, ok := parsed(strings.Repeat("[", 9000) + strings.Repeat("]", 9000)); !ok {
		t.Error("a deep text is not read")
	}
	if many := "[" + strings.Repeat("{},", manyBrackets) + "{}]"; true {
		if got, ok := parsed(many); !ok || !got.IsArray() {
			t.Error("a text with many brackets is not read")
		}
	}
}

func FuzzFields(f *testing.F) {
	f.Add(`{"a":[{"b":"\\\""}],"c":null}`)
	f.Add(`{"tools":0,"\u0074oo\u006Cs":[1],"y":["\u0074ools-"]}`) // the last of equal names counts
	f.Fuzz(func(t *testing.T, text string) {
		e, ok := parsed(text)
		if ok != json.Valid([]byte(text)) {
			t.Fatalf("%q: valid %v", text, ok)
		}
		var want map[string]json.RawMessage
		if json.Unmarshal([]byte(text), &want) != nil || !ok {
			return
		}
		got := fieldsOf(e)
		for name, value := range want {
			if !utf8.ValidString(name) || strings.ContainsRune(name, utf8.RuneError) {
				return // encoding/json repairs names that are not UTF-8
			}
			if got[name].Raw != string(value) {
				t.Errorf("%q: %s is %s", text, name, got[name].Raw)
			}
		}
	})
}
