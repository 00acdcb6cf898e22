package fakegithub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestCheckRunEventHasTheWholeSuiteAndRESTOnlyItsID(t *testing.T) {
	h := newHouse(t)
	_, head := h.opened()
	h.checkRunsHappen(head)
	hooks := h.settled("check_run")
	if got := hooks[0].at("check_run", "check_suite", "head_branch"); got != "work" {
		t.Fatalf("head_branch %v in the event", got)
	}
	_, raw := h.wire(h.client.Client(), "GET", "/repos/"+repo+"/commits/"+head+"/check-runs", "")
	runs := decodeExactly(t, raw).(map[string]any)["check_runs"].([]any)
	if suite := runs[0].(map[string]any)["check_suite"].(map[string]any); len(suite) != 1 {
		t.Fatalf("REST gives more than the id: %v", suite)
	}
}

func TestShapeCheckFindsMissingWrongAndUndocumentedFields(t *testing.T) {
	all := readShapes(t)
	body := decodeExactly(t, []byte(`{"id": "7", "url": "u", "name": "bug", "color": "ededed", "default": false, "description": null, "shade": 1}`))
	want := []string{
		"label.id is 7 (string), documented as int",
		"label.node_id is missing, label requires it",
		"label.shade is not documented for label",
	}
	if diff := cmp.Diff(want, all.check("label", body, "label")); diff != "" {
		t.Fatal(diff)
	}
}
