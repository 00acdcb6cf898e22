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
		t.Skipf("the evaluation data is missing: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// withComment adds a comment with new words at a time, like a thread's fold.
func withComment(all []Moment, at time.Time) []Moment {
	if n := len(all); n > 0 && at.Sub(all[n-1].At) <= time.Second {
		return all
	}
	return append(all, Moment{At: at.Truncate(time.Second), Fresh: true})
}

// TestEvalUsersInSessionsAreNotPrograms uses the times at which users wrote to their agents in recorded sessions.
func TestEvalUsersInSessionsAreNotPrograms(t *testing.T) {
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
		var all []Moment
		for _, e := range session.Events {
			if e.Tool == "__user__" {
				all = withComment(all, e.T)
			}
		}
		if len(all) < inARow {
			continue
		}
		long++
		remarks += len(all)
		if mechanical(all) > 0 {
			taken++
		}
	}
	t.Logf("%d of %d users with %d remarks are taken for a program", taken, long, remarks)
	if long == 0 || taken > 0 {
		t.Errorf("%d of %d, want none", taken, long)
	}
}

// TestEvalProgramWithAUsersLoginIsRecognised uses the comments of a wrapper that wrote with its owner's login.
func TestEvalProgramWithAUsersLoginIsRecognised(t *testing.T) {
	var comments []struct {
		At time.Time `json:"created_at"`
	}
	if err := json.NewDecoder(evalFile(t, "feedback/hm-pr843-comments.json")).Decode(&comments); err != nil {
		t.Fatal(err)
	}
	var all []Moment
	for _, c := range comments {
		all = withComment(all, c.At)
	}
	if got := mechanical(all); got == 0 {
		t.Errorf("none of %d comments is taken for a program's", len(all))
	}
}
