package agent

import (
	"encoding/json"
	"strings"
	"testing"
)

// A line can be cut anywhere. The fields before the cut are read.
func TestTruncatedLineKeepsItsFields(t *testing.T) {
	const whole = `{"type":"x","part":{"id":"1","text":"a\"b\\c\u00e9 d`
	for cut := strings.Index(whole, `a\"b`); cut <= len(whole); cut++ {
		got := Line([]byte(whole[:cut]))
		text := got.Get("part.text").Str
		if got.Get("type").Str != "x" || got.Get("part.id").Str != "1" || !strings.HasPrefix(`a"b\cé d`, text) {
			t.Errorf("%s: %q", whole[:cut], text)
		}
	}
}

func TestOnlyJSONObjectsAreLines(t *testing.T) {
	for _, line := range []string{"", "  ", "x", `"{\"type\":\"x\"}"`, "[1]", "12"} {
		if Line([]byte(line)).Exists() {
			t.Errorf("%q is taken for a line", line)
		}
	}
	if !Line([]byte(" {\"type\":\"x\"}\r")).Exists() {
		t.Error("white space around a line hides it")
	}
}

func FuzzStringsAgreeWithEncodingJSON(f *testing.F) {
	f.Add(`a"b\c` + "\n\u2019😀")
	f.Fuzz(func(t *testing.T, s string) {
		b, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want string
		if err := json.Unmarshal(b, &want); err != nil {
			t.Fatal(err)
		}
		line := Line([]byte(`{"a":` + string(b) + `,"b":1}`))
		if line.Get("a").Str != want || Count(line.Get("b")) != 1 {
			t.Errorf("%s reads as %q, want %q", line.Raw, line.Get("a").Str, want)
		}
	})
}
