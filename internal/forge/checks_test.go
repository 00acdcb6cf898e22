package forge

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestACheckRunIsSentAsGitHubDocumentsIt(t *testing.T) {
	h, c := start(t)
	at := time.Date(2026, 11, 21, 11, 0, 0, 0, time.UTC)
	run := CheckRun{
		Name: "pawl/severity", HeadSHA: "abc", ExternalID: "octo/hello#3", Status: "completed", Conclusion: "failure",
		Title: "severe", Summary: "105 edits", Text: "table", DetailsURL: "https://pawl.example/threads/3", StartedAt: at,
		Actions:     []Action{{Label: "Retry", Description: "Try again", Identifier: "retry"}},
		Annotations: []Annotation{{Path: "a.go", StartLine: 4, Level: "warning", Message: "edited 26 times"}},
	}
	if _, err := c.CreateCheckRun(t.Context(), testRepo, run); err != nil {
		t.Fatal(err)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{
		"name": "pawl/severity", "head_sha": "abc", "external_id": "octo/hello#3", "status": "completed", "conclusion": "failure",
		"details_url": "https://pawl.example/threads/3", "started_at": "2026-11-21T11:00:00Z", "completed_at": "2026-11-21T12:00:00Z",
		"output": {"title": "severe", "summary": "105 edits", "text": "table", "annotations": [
			{"path": "a.go", "start_line": 4, "end_line": 4, "annotation_level": "warning", "message": "edited 26 times"}]},
		"actions": [{"label": "Retry", "description": "Try again", "identifier": "retry"}]}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, h.calls(checkRoute)[0].body); diff != "" {
		t.Error(diff)
	}
}

func TestAnUpdateWithoutButtonsTakesTheOldOnesAway(t *testing.T) {
	h, c := start(t)
	got, err := c.UpdateCheckRun(t.Context(), testRepo, 1, CheckRun{Name: "pawl", HeadSHA: "abc", Status: "in_progress", Title: "T", Summary: "S"}, nil)
	if err != nil || got.Status != "in_progress" {
		t.Fatalf("%+v, %v", got, err)
	}
	body := h.calls("PATCH /repos/octo/hello/check-runs/1")[0].body
	if actions, ok := body["actions"].([]any); !ok || len(actions) != 0 {
		t.Errorf("actions = %v", body["actions"])
	}
	if body["head_sha"] != nil || body["completed_at"] != nil || body["conclusion"] != nil {
		t.Errorf("body = %v", body)
	}
}

func TestEverythingInACheckRunIsCutToGitHubsLimits(t *testing.T) {
	run := CheckRun{Name: "pawl", HeadSHA: "abc", Title: strings.Repeat("t", 999), Summary: strings.Repeat("é\n", 50_000), Text: strings.Repeat("x", 99_999)}
	for n := range 60 {
		run.Annotations = append(run.Annotations, Annotation{Path: "a", StartLine: n, Level: "notice", Message: "m"})
	}
	for n := range 5 {
		run.Actions = append(run.Actions, Action{Label: strings.Repeat("ü", 30), Description: strings.Repeat("d", 50), Identifier: fmt.Sprint(n)})
	}
	u := run.update(time.Now())
	out := u.Output
	if len(u.Actions) != 3 || utf8.RuneCountInString(u.Actions[0].Label) != 20 || utf8.RuneCountInString(u.Actions[0].Description) != 40 {
		t.Errorf("actions = %+v", u.Actions[0])
	}
	if len(out.Annotations) != 50 || !strings.Contains(out.GetText(), "10 of 60 annotations are left out") {
		t.Errorf("%d annotations; text starts %q", len(out.Annotations), out.GetText()[:60])
	}
	if len(out.GetTitle()) > 260 || len(out.GetSummary()) > MaxText || len(out.GetText()) > MaxText {
		t.Errorf("title %d, summary %d, text %d bytes", len(out.GetTitle()), len(out.GetSummary()), len(out.GetText()))
	}
	run.Actions[0].Identifier = strings.Repeat("i", 21)
	if err := run.check(); err == nil {
		t.Error("a long identifier was accepted")
	}
}

func TestACheckRunIsFoundByNameAndExternalID(t *testing.T) {
	h, c := start(t)
	for n := range 130 {
		h.checks = append(h.checks, map[string]any{"id": n + 1, "name": "pawl", "external_id": fmt.Sprint("t", n%65), "app": map[string]any{"id": testApp}})
	}
	h.checks = append(h.checks, map[string]any{"id": 500, "name": "pawl", "external_id": "t7", "app": map[string]any{"id": 99}})
	found, ok, err := c.FindCheckRun(t.Context(), testRepo, "abc", "pawl", "t7")
	if err != nil || !ok || found.ID != 73 {
		t.Errorf("%+v, %v, %v; want the newest of this App, 73", found, ok, err)
	}
	if _, ok, err := c.FindCheckRun(t.Context(), testRepo, "abc", "pawl", "none"); ok || err != nil {
		t.Errorf("%v, %v", ok, err)
	}
}

func TestACheckRunNeedsANameAndACommit(t *testing.T) {
	h, c := start(t)
	_, err := c.CreateCheckRun(t.Context(), testRepo, CheckRun{Name: "pawl"})
	if err == nil || len(h.seen) != 0 {
		t.Errorf("err = %v, %d requests", err, len(h.seen))
	}
}

func TestACommitThatIsGoneIsInvalid(t *testing.T) {
	h, c := start(t)
	h.fail(checkRoute, message(422, "No commit found for SHA: abc"))
	_, err := c.CreateCheckRun(t.Context(), testRepo, CheckRun{Name: "pawl", HeadSHA: "abc"})
	if !errors.Is(err, ErrInvalid) || !strings.Contains(err.Error(), "No commit found") {
		t.Errorf("err = %v", err)
	}
}
