package store_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver/thread"
)

func storedGUIDsAreKnown(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	want := map[string]bool{}
	var asked []string
	for n := range 1200 {
		guid := fmt.Sprintf("guid-%04d", n)
		asked = append(asked, guid)
		if n%400 == 7 {
			must(s.Receive(t.Context(), thread.Delivery{GUID: guid, Event: "issues", ReceivedAt: c.Now()}))(t)
			want[guid] = true
		}
	}
	if diff := cmp.Diff(want, must(s.Known(t.Context(), asked))(t)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if known := must(s.Known(t.Context(), nil))(t); len(known) != 0 {
		t.Errorf("without GUIDs: %v", known)
	}
}
