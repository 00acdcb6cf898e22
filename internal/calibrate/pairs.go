package calibrate

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
)

// maxLine bounds one line of the input in bytes; a pair holds two texts.
const maxLine = 64 << 20

// Labels of a pair.
const (
	Same      = "same"
	Different = "different"
)

// Pair is two attempts at one task as one view shows them, with the truth about
// them.
type Pair struct {
	View  string // one of Views
	Label string // Same or Different
	// Group is the task. Pairs of one task are not independent of each other,
	// so the uncertainty is that of drawing other tasks, not other pairs.
	Group string
	A, B  string
}

// Views are what is known of an attempt, in the order of a report: its failure
// text, the agent's prose, and the diff.
func Views() []string { return []string{"failure", prose, "diff"} }

// prose is the view of what the agent says about its work.
const prose = "revision"

// Read yields the pairs of a JSONL stream, which may be compressed with gzip. It
// ends at the first error, which names the line. Blank lines are skipped, and
// keys that Pair does not have are ignored.
func Read(r io.Reader) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		in := bufio.NewReader(r)
		if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
			z, err := gzip.NewReader(in)
			if err != nil {
				yield(Pair{}, fmt.Errorf("decompress: %w", err))
				return
			}
			in = bufio.NewReader(z)
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		n := 1
		for ; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			p, err := parse(lines.Bytes())
			if err != nil {
				yield(Pair{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(p, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Pair{}, fmt.Errorf("line %d: %w", n, err))
		}
	}
}

// parse reads one line and refuses what cannot be counted: a misspelt label
// taken for the other one would turn the numbers round.
func parse(line []byte) (Pair, error) {
	var row struct {
		View, Label, Group string
		A, B               *string
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return Pair{}, fmt.Errorf("not a pair in JSON: %w", err)
	}
	switch {
	case !slices.Contains(Views(), row.View):
		return Pair{}, fmt.Errorf("view %.40q: use %s", row.View, strings.Join(Views(), ", "))
	case row.Label != Same && row.Label != Different:
		return Pair{}, fmt.Errorf("label %.40q: use %s or %s", row.Label, Same, Different)
	case row.Group == "":
		return Pair{}, fmt.Errorf("no group: name the task that both attempts worked on")
	case row.A == nil || row.B == nil:
		return Pair{}, fmt.Errorf("no text: a pair needs both a and b")
	}
	return Pair{row.View, row.Label, row.Group, *row.A, *row.B}, nil
}
