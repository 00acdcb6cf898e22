package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestCheckRunMatchesGitHubsDocumentation(t *testing.T) {
	h, c := start(t)
	run := CheckRun{
		Name: "pawl/severity", HeadSHA: h.branch(), ExternalID: "octo/hello#3", Status: "completed", Conclusion: "failure",
		DetailsURL: "https://pawl.example/threads/3",
		Output: Output{
			Title: "severe", Summary: "105 edits",
			Annotations: []Annotation{{Path: "a.go", StartLine: 4, Level: "warning", Message: "edited 26 times"}},
		},
		Actions: []Button{{Label: "Retry", Description: "Try again", Identifier: "retry"}},
	}
	if _, err := c.Checks.Create(t.Context(), h.repo, run); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"name": "pawl/severity", "head_sha": "`+run.HeadSHA+`", "external_id": "octo/hello#3", "status": "completed", "conclusion": "failure",
		"details_url": "https://pawl.example/threads/3", "completed_at": "2026-11-21T12:00:00Z",
		"output": {"title": "severe", "summary": "105 edits", "annotations": [
			{"path": "a.go", "start_line": 4, "end_line": 4, "annotation_level": "warning", "message": "edited 26 times"}]},
		"actions": [{"label": "Retry", "description": "Try again", "identifier": "retry"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.calls(checkRoute)[0].body); diff != "" {
		t.Error(diff)
	}
}

func TestUpdateWithoutButtonsRemovesOldOnes(t *testing.T) {
	h, c := start(t)
	run := h.checkRun()
	change := CheckRun{Name: "pawl", HeadSHA: run.HeadSHA, Status: "in_progress", Output: Output{Title: "T", Summary: "S"}}
	if _, err := c.Checks.Update(t.Context(), h.repo, run.ID, change); err != nil {
		t.Fatal(err)
	}
	body := h.calls(updateRoute)[0].body
	if actions, ok := body["actions"].([]any); !ok || len(actions) != 0 {
		t.Errorf("actions = %v", body["actions"])
	}
	if body["status"] != "in_progress" || body["head_sha"] != nil || body["completed_at"] != nil || body["conclusion"] != nil {
		t.Errorf("body = %v", body)
	}
}

func TestCheckRunIsCutToGitHubsLimits(t *testing.T) {
	run := CheckRun{Name: "pawl", HeadSHA: "abc", Output: Output{Title: strings.Repeat("t", 999), Summary: strings.Repeat("é\n", 50_000)}}
	for n := range 60 {
		run.Annotations = append(run.Annotations, Annotation{Path: "a", StartLine: n, Level: "notice", Message: "m"})
	}
	out := run.fit(time.Now()).Output
	if len(out.Annotations) != 50 || len(run.Annotations) != 60 {
		t.Errorf("%d annotations of %d", len(out.Annotations), len(run.Annotations))
	}
	if len(out.Title) > 260 || len(out.Summary) > maxText {
		t.Errorf("title %d, summary %d bytes", len(out.Title), len(out.Summary))
	}
}

func TestACheckRunIsFoundByNameAndExternalID(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	ids := map[string]int64{}
	for n := range pageSize + 5 {
		made, err := c.Checks.Create(t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: sha, ExternalID: fmt.Sprint("t", n%65), Status: "queued"})
		if err != nil {
			t.Fatal(err)
		}
		ids[made.ExternalID] = made.ID
	}
	for _, one := range []string{"t3", "t39", "t40", "t64"} { // t3 and t39 occur twice
		if found, ok, err := c.Checks.Find(t.Context(), h.repo, sha, "pawl", one); err != nil || !ok || found.ID != ids[one] {
			t.Errorf("%s: %+v, %v, %v; want the newest, %d", one, found, ok, err, ids[one])
		}
	}
	if _, ok, err := c.Checks.Find(t.Context(), h.repo, sha, "pawl", "none"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestCheckRunOfAnotherNameOrAppIsNotFound(t *testing.T) {
	h, c := start(t)
	h.fail("GET /repos/octo/hello/commits/abc/check-runs", status(http.StatusOK, `{"total_count": 4, "check_runs": [
		{"id": 72, "name": "pawl", "external_id": "t7", "app": {"id": 4711}}, {"id": 73, "name": "pawl", "external_id": "t7", "app": {"id": 4711}},
		{"id": 74, "name": "other", "external_id": "t7", "app": {"id": 4711}}, {"id": 500, "name": "pawl", "external_id": "t7", "app": {"id": 99}}]}`))
	found, ok, err := c.Checks.Find(t.Context(), h.repo, "abc", "pawl", "t7")
	if err != nil || !ok || found.ID != 73 {
		t.Errorf("%+v, %v, %v; want the newest of this App, 73", found, ok, err)
	}
}

func TestMissingCommitIsInvalid(t *testing.T) {
	h, c := start(t)
	_, err := c.Checks.Create(t.Context(), h.repo, CheckRun{Name: "pawl", HeadSHA: "abc"})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "No commit found") {
		t.Errorf("err = %v", err)
	}
}

func TestAnnotationsAreReadFailuresFirstAndBounded(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	h.AddOtherApp("ci", 900)
	var notes []fakegithub.CheckAnnotation
	for n := range 120 {
		notes = append(notes, fakegithub.CheckAnnotation{Path: "a.go", Line: n + 1, Level: "warning", Message: "deprecated"})
	}
	for n := range 130 {
		notes = append(notes, fakegithub.CheckAnnotation{Path: "a_test.go", Line: n + 1, Title: "TestSorted", Message: fmt.Sprint("case ", n, strings.Repeat(" x", 5000))})
	}
	id, err := h.CompleteCheckRun("octo/hello", "ci", fakegithub.CheckResult{SHA: sha, Name: "unit", Conclusion: "failure", Annotations: notes})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Checks.Annotations(t.Context(), h.repo, id)
	if err != nil || len(got) != 50 {
		t.Fatalf("%d annotations, %v; want 50", len(got), err)
	}
	if a := got[0]; a.Path != "a_test.go" || a.StartLine != 1 || !strings.HasPrefix(a.Message, "TestSorted: case 0 x") || len(a.Message) > maxMessage {
		t.Errorf("the first is %s:%d %.40q of %d bytes, want the first failure, cut", a.Path, a.StartLine, a.Message, len(a.Message))
	}
	if a := got[49]; a.Level != "failure" || a.StartLine != 50 {
		t.Errorf("the last is %s:%d (%s), want the fiftieth failure", a.Path, a.StartLine, a.Level)
	}
}

func TestFailuresPrecedeOtherAnnotations(t *testing.T) {
	h, c := start(t)
	sha := h.branch()
	h.AddOtherApp("ci", 900)
	id, err := h.CompleteCheckRun("octo/hello", "ci", fakegithub.CheckResult{SHA: sha, Name: "unit", Conclusion: "failure", Annotations: []fakegithub.CheckAnnotation{
		{Path: ".github", Line: 1, Level: "warning", Message: "Node.js 16 actions are deprecated."},
		{Path: ".github", Line: 9, Title: "exit code 1", Message: "Process completed with exit code 1."},
	}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Checks.Annotations(t.Context(), h.repo, id)
	if err != nil || len(got) != 2 || got[0].Message != "Process completed with exit code 1." || got[1].Level != "warning" {
		t.Errorf("%+v, %v; want the failure, then the warning", got, err)
	}
	if _, err := c.Checks.Annotations(t.Context(), h.repo, id+1); !errors.Is(err, ErrNotFound) {
		t.Errorf("a check run that does not exist: %v, want ErrNotFound", err)
	}
}
