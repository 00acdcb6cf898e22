package handlers

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pawlbot/pawl/solver"
)

func TestOfAnIgnoredRemarkLittleIsKept(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	f := brief(solver.Feedback{Raw: long, Text: long, Baseline: long, Snapshot: &solver.Snapshot{Title: "t", Body: long, Installation: 7}})
	if len(f.Raw) > maxIgnored || f.Text != "" || f.Baseline != "" || f.Snapshot.Body != "" || f.Snapshot.Installation != 7 || !utf8.ValidString(f.Raw) {
		t.Errorf("kept %d bytes of it, snapshot %+v", len(f.Raw), f.Snapshot)
	}
}

func TestTheTextsOfAnEditBackAreKept(t *testing.T) {
	f := brief(solver.Feedback{Raw: strings.Repeat("x", 40_000), Description: "a", Baseline: "b", Snapshot: &solver.Snapshot{Title: "t", Body: "a"}})
	if len(f.Raw) > maxIgnored || f.Baseline != "b" || f.Snapshot.Body != "a" {
		t.Errorf("kept %d bytes, baseline %q, snapshot %+v; want the fold to know both texts", len(f.Raw), f.Baseline, f.Snapshot)
	}
}
