package server_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
)

// The settings follow docs/operations.md. Each removes records an hour older than its limit, but none an hour younger.
func TestRetentionIsApplied(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.Config = "retention: {deliveries: 1000h, transcripts: 100h, threads: 3000h}\n"
	r.Agent(testrig.PlainAgent, "")
	r.Start()
	var closed, open, young int
	for _, n := range []*int{&closed, &open, &young} {
		*n, _ = r.Solved()
	}
	for _, n := range []int{closed, young} {
		r.Must(r.World.CloseIssue(testrig.Repo, n, testrig.Writer))
	}
	r.Settle()
	before := r.Deliveries()
	if code := r.Stop(syscall.SIGTERM); code != 0 {
		t.Fatalf("exit code %d", code)
	}

	ago := func(hours int) time.Time { return time.Now().Add(-time.Duration(hours) * time.Hour) }
	db := r.Database()
	change := func(query string, args ...any) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), query, args...)
		r.Must(err)
	}
	// GitHub's list has no deliveries of that age.
	const old, kept = "11111111-0000-4000-8000-000000000001", "11111111-0000-4000-8000-000000000002"
	for guid, hours := range map[string]int{old: 1001, kept: 999} {
		change(`INSERT INTO deliveries (guid, event, payload, received_at, state, note, tries, retry_at)
			SELECT ?, event, payload, ?, state, note, tries, retry_at FROM deliveries WHERE guid = ?`, guid, ago(hours).UnixMicro(), before[0].GUID)
	}
	for n, hours := range map[int]int{closed: 3001, open: 3001, young: 2999} {
		change("UPDATE threads SET updated_at = ? WHERE number = ?", ago(hours).UnixMicro(), n)
	}
	r.Must(db.Close())
	transcript := func(n int) string {
		return filepath.Join(r.Dir, "data", "attempts", "acme", "widgets", fmt.Sprint(n), "1", "transcript")
	}
	for n, hours := range map[int]int{closed: 101, open: 101, young: 99} {
		r.Must(os.Chtimes(transcript(n), ago(hours), ago(hours)))
	}

	r.Clock.Pass(time.Minute) // the cleaning interval has passed
	r.Start()
	r.Await("the cleaning at the second start", func() bool { return strings.Count(r.Log.String(), `"old records removed"`) == 2 })
	for n, want := range map[int]bool{closed: false, open: false, young: true} {
		if _, err := os.Stat(transcript(n)); (err == nil) != want {
			t.Errorf("transcript of %s: %v, want it kept: %t", testrig.ThreadName(n), err, want)
		}
	}
	for n, want := range map[int]bool{closed: false, open: true, young: true} {
		if s := r.Thread(testrig.ThreadName(n)); (s.State != "") != want {
			t.Errorf("%s is %q, want its log kept: %t", testrig.ThreadName(n), s.State, want)
		}
	}
	has := map[string]bool{}
	for _, d := range r.Deliveries() {
		has[d.GUID] = true
	}
	if has[old] || !has[kept] {
		t.Errorf("the old delivery exists: %t, the younger one: %t", has[old], has[kept])
	}
	if d := r.DeliveryOf(kept); len(d.Payload) == 0 {
		t.Error("the payload of the younger delivery was removed")
	}
}
