package fakegithub_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestACheckRunEventCarriesItsWholeSuiteAndRESTOnlyTheID(t *testing.T) {
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

func TestTheDefaultBranchCannotBeDeleted(t *testing.T) {
	h := newHouse(t)
	_, err := h.client.Git.DeleteRef(h.ctx, "acme", "tools", "heads/main")
	wantStatus(t, err, 422, "Cannot delete the default branch")
	if diff := cmp.Diff([]string{"main"}, keys(h.Branches(repo))); diff != "" {
		t.Fatal(diff)
	}
}
