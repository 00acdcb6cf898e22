package handlers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// readers parse the events that Pawl handles.
var readers = map[string]func(*payload) []Activity{
	"issue_comment": issueComment, "issues": issues, "pull_request": pullRequest, "pull_request_review": pullRequestReview,
	"pull_request_review_comment": pullRequestReviewComment, "check_run": checkRun, "check_suite": checkRun, "push": push, "delete": branchDeleted,
	"installation": installation, "installation_repositories": installationRepositories, "repository": repositoryChanged,
	"github_app_authorization": authorization,
}

func TestEveryEventOfTheAppHasAHandler(t *testing.T) {
	var handled []string
	for _, h := range new(Handlers).EventHandlers() {
		if _, ok := h.(Other); ok {
			continue
		}
		handled = append(handled, h.Handles()...)
	}
	slices.Sort(handled)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(readers)), handled); diff != "" {
		t.Errorf("handled (-want +got):\n%s", diff)
	}
}

// anyPayload draws payloads with the handlers' fields. Each may be missing, null, empty, or of another kind.
func anyPayload(t *rapid.T) map[string]any {
	text := rapid.SampledFrom([]any{nil, "", "x", "pawl:acme/widgets#1", "refs/heads/pawl/issue-1", "pawl/issue-1"})
	odd := rapid.SampledFrom([]any{nil, "", 7, []any{}, []any{nil}, map[string]any{}})
	user := func() any {
		return some(t, odd, map[string]any{"id": 1, "login": text.Draw(t, "login"), "type": "User"})
	}
	repository := func() any {
		return some(t, odd, map[string]any{"id": 1, "name": text.Draw(t, "name"), "full_name": "acme/widgets", "owner": user(), "default_branch": "main"})
	}
	body := func() any { return some(t, odd, map[string]any{"from": text.Draw(t, "from")}) }
	actions := []any{nil, "created", "edited", "deleted", "opened", "labeled", "closed", "reopened", "synchronize", "submitted",
		"completed", "requested_action", "rerequested", "renamed", "removed", "added", "suspend", "transferred", "revoked"}
	side := func() any {
		return some(t, odd, map[string]any{"ref": text.Draw(t, "ref"), "sha": "a", "repo": repository()})
	}
	thread := func() any {
		return some(t, odd, map[string]any{"number": 1, "title": "t", "body": text.Draw(t, "body"), "user": user(), "head": side(), "base": side()})
	}
	return map[string]any{
		"action": rapid.SampledFrom(actions).Draw(t, "action"), "number": 1, "sender": user(), "repository": repository(),
		"installation": some(t, odd, map[string]any{"id": 1}), "issue": thread(), "pull_request": thread(),
		"comment": some(t, odd, map[string]any{"id": 1, "body": text.Draw(t, "comment"), "user": user(), "performed_via_github_app": odd.Draw(t, "via")}),
		"review":  some(t, odd, map[string]any{"id": 1, "body": text.Draw(t, "review"), "user": user(), "state": text.Draw(t, "state")}),
		"label":   some(t, odd, map[string]any{"name": text.Draw(t, "label")}),
		"changes": some(t, odd, map[string]any{"body": body(), "repository": map[string]any{"name": body()}}),
		"check_run": some(t, odd, map[string]any{"id": 1, "external_id": text.Draw(t, "external"), "app": odd.Draw(t, "app"), "output": odd.Draw(t, "output"),
			"pull_requests": odd.Draw(t, "pulls"), "check_suite": some(t, odd, map[string]any{"head_branch": text.Draw(t, "branch")})}),
		"check_suite":      some(t, odd, map[string]any{"head_branch": text.Draw(t, "suite"), "app": map[string]any{"id": 1}, "pull_requests": odd.Draw(t, "suites")}),
		"requested_action": some(t, odd, map[string]any{"identifier": text.Draw(t, "identifier")}),
		"ref":              text.Draw(t, "ref"), "ref_type": "branch", "repositories": odd.Draw(t, "repositories"),
		"repositories_added": odd.Draw(t, "added"), "repositories_removed": odd.Draw(t, "removed"),
	}
}

// some draws a value, or with a chance of 1 in 4 an odd one.
func some(t *rapid.T, odd *rapid.Generator[any], value any) any {
	if rapid.IntRange(0, 3).Draw(t, "odd") == 0 {
		return odd.Draw(t, "instead")
	}
	return value
}

func TestNoPayloadMakesAHandlerPanic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload, err := json.Marshal(anyPayload(t))
		if err != nil {
			t.Fatal(err)
		}
		activities, err := read(payload, readers[rapid.SampledFrom(slices.Sorted(maps.Keys(readers))).Draw(t, "event")])
		if err != nil && len(activities) > 0 {
			t.Fatalf("%d activities in addition to the error %v", len(activities), err)
		}
		for _, h := range activities {
			if h.What == nil {
				t.Fatalf("the activity has no content: %+v", h)
			}
		}
	})
}

func TestButtonPressNamesItsButton(t *testing.T) {
	const run = `"check_run": {"external_id": "pawl/severity:acme/widgets#7", "app": {"id": 1}}, "repository": {"full_name": "Acme/widgets"}`
	for _, tc := range []struct{ payload, button, note string }{
		{`{"action": "requested_action", "requested_action": {"identifier": "stop"}, ` + run + `}`, "stop", ""},
		{`{"action": "rerequested", ` + run + `}`, "retry", ""},
		{`{"action": "requested_action", ` + run + `}`, "", "the payload names no button"},
		{`{"action": "rerequested", "check_run": {"external_id": "other"}}`, "", "the button belongs to no check run of this App"},
		{`{"action": "rerequested", "check_run": {"external_id": "pawl:acme/other#7"}, "repository": {"full_name": "acme/widgets"}}`, "", "the button belongs to no check run of this App"},
	} {
		activities, err := read([]byte(tc.payload), readers["check_run"])
		if err != nil || len(activities) != 1 {
			t.Errorf("%s: %+v, %v", tc.payload, activities, err)
			continue
		}
		button := ""
		if r, is := activities[0].What.(Remarked); is {
			button = r.Remark.Name
		}
		note, _ := activities[0].What.(noted)
		if button != tc.button || string(note) != tc.note {
			t.Errorf("%s: button %q, note %q, want %q and %q", tc.payload, button, note, tc.button, tc.note)
		}
		if tc.button != "" && (activities[0].thread == nil || activities[0].thread.Number != 7 || !activities[0].MadeAt.IsZero()) {
			t.Errorf("%s: %+v, want thread 7 and no time", tc.payload, activities[0])
		}
	}
}

func TestDeletedIssueIsClosedWithAReason(t *testing.T) {
	for _, how := range []string{"transferred", "deleted"} {
		payload := fmt.Sprintf(`{"action": %q, "issue": {"number": 7, "state": "open"}, "sender": {"login": "ada"}, "repository": {"full_name": "acme/widgets"}}`, how)
		activities, err := read([]byte(payload), readers["issues"])
		if err != nil || len(activities) != 1 {
			t.Fatalf("%s: %+v, %v; want a change", how, activities, err)
		}
		if c := activities[0].What.(Changed).Change; activities[0].Number != 7 || c.What != "closed" || c.Detail != how || c.By != "ada" {
			t.Errorf("%s: #%d %+v", how, activities[0].Number, c)
		}
	}
}

// GitHub's own example (octokit/webhooks, check_run/rerequested) has a time that is not RFC 3339, in a field that
// Pawl does not read.
func TestUnreadFieldsMayBeInvalid(t *testing.T) {
	const payload = `{"action": "rerequested", "check_run": {"id": 4, "app": {"id": 1, "created_at": "2018-04-25 20:42:10"}}}`
	if _, err := read([]byte(payload), checkRun); err != nil {
		t.Error(err)
	}
}

// GitHub lists no repositories for a suspension (octokit/webhooks, installation/suspend).
func TestInstallationCoversRepositoriesOrTheAccount(t *testing.T) {
	const account = `"installation": {"id": 5, "account": {"id": 1, "login": "acme"}}, "sender": {"login": "ada"}`
	const two = `"repositories": [{"id": 1, "full_name": "acme/widgets"}, {"id": 2, "full_name": "acme/gadgets"}, {"id": 3, "full_name": "odd"}, {"id": 4, "full_name": "odd/"}]`
	for _, tt := range []struct {
		payload string
		of      []string
		what    string
	}{
		{`{"action": "suspend", ` + account + `}`, []string{"acme/"}, "uninstalled"},
		{`{"action": "unsuspend", ` + account + `}`, []string{"acme/"}, "installed"},
		{`{"action": "deleted", ` + account + `, ` + two + `}`, []string{"acme/widgets", "acme/gadgets"}, "uninstalled"},
		{`{"action": "created", ` + account + `, ` + two + `}`, []string{"acme/widgets", "acme/gadgets"}, "installed"},
		{`{"action": "new_permissions_accepted", ` + account + `, ` + two + `}`, nil, ""},
		{`{"action": "suspend", "installation": {"id": 5}}`, nil, ""},
	} {
		activities, err := read([]byte(tt.payload), readers["installation"])
		if err != nil {
			t.Fatal(err)
		}
		var of []string
		for _, h := range activities {
			of = append(of, h.Repo.FullName())
			c := h.What.(changedAll).change
			if n := c.Snapshot; tt.what == "installed" && (n == nil || n.Installation != 5 || n.RepoID != h.Repo.ID) || tt.what == "uninstalled" && n != nil {
				t.Errorf("%s: the details for %s are %+v", tt.payload, h.Repo.FullName(), n)
			}
			if c.What != tt.what || c.By != "ada" || h.Repo.Installation != 5 {
				t.Errorf("%s: %+v %+v", tt.payload, h, c)
			}
		}
		if diff := cmp.Diff(tt.of, of); diff != "" {
			t.Errorf("%s (-want +got)\n%s", tt.payload, diff)
		}
	}
}

func TestRenamingWithoutTheOldNameIsIgnored(t *testing.T) {
	activities, err := read([]byte(`{"action": "renamed", "repository": {"name": "gadgets", "full_name": "acme/gadgets", "owner": {"login": "acme"}}}`), readers["repository"])
	if err != nil || len(activities) != 0 {
		t.Errorf("activities %+v, %v; want none", activities, err)
	}
}

func TestTransferIsARename(t *testing.T) {
	const repo = `"repository": {"name": "widgets", "full_name": "new/widgets", "owner": {"login": "new"}}`
	for was, want := range map[string]string{
		`{"organization": {"login": "acme"}}`: "acme/widgets",
		`{"user": {"login": "ada"}}`:          "ada/widgets",
		`{}`:                                  "",
	} {
		activities, err := read([]byte(`{"action": "transferred", "changes": {"owner": {"from": `+was+`}}, `+repo+`}`), readers["repository"])
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, it := range activities {
			got = it.Repo.FullName()
			if c := it.What.(changedAll).change; c.What != "renamed" || c.Detail != "new/widgets" {
				t.Errorf("%s: %+v", was, c)
			}
		}
		if got != want {
			t.Errorf("%s concerns %q, want %q", was, got, want)
		}
	}
}

func TestIrrelevantEventsAreNotRead(t *testing.T) {
	h := new(Handlers)
	if h.Reads("check_run", "created") || h.Reads("check_suite", "requested") || h.Reads("ping", "") {
		t.Error("an irrelevant event is read")
	}
	if !h.Reads("check_run", "completed") {
		t.Error("a finished check run is not read")
	}
}
