//go:build eval

package feedback

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"testing"
	"time"
)

const corpora = "../../../shared/corpora/"

func evalFile(t *testing.T, name string) io.Reader {
	t.Helper()
	f, err := os.Open(corpora + name)
	if errors.Is(err, os.ErrNotExist) {
		t.Skipf("the evaluation data is not here: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// heardOf adds what somebody said at a time in fresh words, as a thread's fold does.
func heardOf(said []Moment, at time.Time) []Moment {
	if n := len(said); n > 0 && at.Sub(said[n-1].At) <= time.Second {
		return said
	}
	return append(said, Moment{At: at.Truncate(time.Second), Fresh: true})
}

// TestEvalPeopleInSessionsAreNoPrograms looks at when people wrote to their agents in
// recorded sessions.
func TestEvalPeopleInSessionsAreNoPrograms(t *testing.T) {
	z, err := gzip.NewReader(evalFile(t, "healthy/toolstream.jsonl.gz"))
	if err != nil {
		t.Fatal(err)
	}
	long, taken, remarks := 0, 0, 0
	for d := json.NewDecoder(z); ; {
		var session struct {
			Events []struct {
				T    time.Time
				Tool string
			}
		}
		if err := d.Decode(&session); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		var said []Moment
		for _, e := range session.Events {
			if e.Tool == "__user__" {
				said = heardOf(said, e.T)
			}
		}
		if len(said) < inARow {
			continue
		}
		long++
		remarks += len(said)
		if mechanical(said) > 0 {
			taken++
		}
	}
	t.Logf("%d of %d people with %d remarks are taken for a program", taken, long, remarks)
	if long == 0 || taken > 0 {
		t.Errorf("%d of %d, want none of some", taken, long)
	}
}

// TestEvalAProgramInAPersonsNameIsKnown reads the comments of a wrapper that wrote with
// its owner's login.
func TestEvalAProgramInAPersonsNameIsKnown(t *testing.T) {
	var comments []struct {
		At time.Time `json:"created_at"`
	}
	if err := json.NewDecoder(evalFile(t, "feedback/hm-pr843-comments.json")).Decode(&comments); err != nil {
		t.Fatal(err)
	}
	var said []Moment
	for _, c := range comments {
		said = heardOf(said, c.At)
	}
	if got := mechanical(said); got == 0 {
		t.Errorf("none of %d comments is taken for a program's", len(said))
	}
}
