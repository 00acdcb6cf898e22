package main

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const goodLine = `{"view": "diff", "label": "same", "group": "t", "a": "x", "b": "", "more": 1}` + "\n"

// readAll returns the pairs before the first error.
func readAll(input string) (pairs []Pair, err error) {
	for p, err := range Read(strings.NewReader(input)) {
		if err != nil {
			return pairs, err
		}
		pairs = append(pairs, p)
	}
	return pairs, nil
}

func TestPairsAreReadPlainAndCompressed(t *testing.T) {
	input := goodLine + "\n  \n" + strings.TrimSpace(goodLine)
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(input)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	one := Pair{View: "diff", Label: Same, Group: "t", A: "x"}
	for name, text := range map[string]string{"plain": input, "gzip": packed.String()} {
		got, err := readAll(text)
		if diff := cmp.Diff([]Pair{one, one}, got); diff != "" || err != nil {
			t.Errorf("%s: error %v (-want +got):\n%s", name, err, diff)
		}
	}
	if _, err := readAll(packed.String()[:packed.Len()-6]); err == nil {
		t.Error("a truncated file gave no error")
	}
}

func TestBadLineIsNamed(t *testing.T) {
	for line, want := range map[string]string{
		`{"view": "diff"`: "line 3: not a pair in JSON",
		`["diff"]`:        "line 3: not a pair in JSON",
		`{"view": "prose", "label": "same", "group": "t", "a": "", "b": ""}`: `line 3: view "prose": use failure, revision, diff`,
		`{"view": "diff", "label": "equal", "group": "t", "a": "", "b": ""}`: `line 3: label "equal": use same or different`,
		`{"view": "diff", "label": "same", "a": "", "b": ""}`:                "line 3: no group",
		`{"view": "diff", "label": "same", "group": "t", "a": ""}`:           "line 3: no text",
		`{"view": "diff", "label": "same", "group": "t", "a": 1, "b": ""}`:   "line 3: not a pair in JSON",
	} {
		got, err := readAll(goodLine + "\n" + line + "\n" + goodLine)
		if err == nil || !strings.HasPrefix(err.Error(), want) || len(got) != 1 {
			t.Errorf("%s: %d pairs, error %v, want %s", line, len(got), err, want)
		}
	}
}

func TestLineLengthIsLimited(t *testing.T) {
	long := strings.Replace(goodLine, `"x"`, `"`+strings.Repeat("x", 1<<20)+`"`, 1)
	if got, err := readAll(long); err != nil || len(got) != 1 {
		t.Errorf("a line of 1 MiB: %d pairs, error %v", len(got), err)
	}
	if _, err := readAll(goodLine + strings.Repeat("x", maxLine+1)); err == nil || !strings.HasPrefix(err.Error(), "line 2: ") {
		t.Errorf("a line above the limit: error %v", err)
	}
}
