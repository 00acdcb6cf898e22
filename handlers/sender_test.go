package handlers

import (
	"context"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// notes is a store that only finishes deliveries; other calls panic.
type notes struct {
	Store
	note string
}

func (n *notes) FinishDelivery(_ context.Context, _ string, _ thread.DeliveryState, note string) error {
	n.note = note
	return nil
}

func TestOnlyARevokedAuthorizationSignsOut(t *testing.T) {
	ada := feedback.Actor{ID: 1, Login: "ada"}
	for action, want := range map[string][]Activity{"revoked": {{What: signedOut{1}}}, "granted": nil} {
		if got := authorization(&payload{Action: action, Sender: ada}); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", action, got, want)
		}
	}
}

func TestPayloadWithoutASenderIsIgnored(t *testing.T) {
	const comment = `"comment": {"id": 4, "body": "/pawl solve", "user": {"id": 1, "login": "ada"}}`
	const run = `"check_run": {"external_id": "pawl:acme/widgets#7", "check_suite": {"head_branch": "pawl/issue-7"}}`
	const issue, pull = `"issue": {"number": 7}`, `"pull_request": {"number": 7}`
	payloads := map[string]string{
		"issue_comment":               `"action": "created", ` + issue + `, ` + comment,
		"issues":                      `"action": "opened", ` + issue,
		"pull_request":                `"action": "closed", ` + pull,
		"pull_request_review":         `"action": "submitted", ` + pull + `, "review": {"id": 4, "body": "/pawl solve", "state": "commented"}`,
		"pull_request_review_comment": `"action": "created", ` + pull + `, ` + comment,
		"check_run":                   `"action": "rerequested", ` + run,
		"check_suite":                 `"action": "rerequested", "check_suite": {"head_branch": "pawl/issue-7", "app": {"id": 1}}`,
		"push":                        `"ref": "refs/heads/main"`,
		"delete":                      `"ref": "pawl/issue-7", "ref_type": "branch"`,
		"installation":                `"action": "suspend", "installation": {"id": 5, "account": {"login": "acme"}}`,
		"installation_repositories":   `"action": "removed", "repositories_removed": [{"id": 1, "full_name": "acme/widgets"}]`,
		"repository":                  `"action": "deleted"`,
		"github_app_authorization":    `"action": "revoked"`,
	}
	const want = "ignored: the payload names no sender"
	for _, handles := range new(Handlers).EventHandlers() {
		if _, other := handles.(Other); other {
			continue
		}
		for _, event := range handles.Handles() {
			payload, ok := payloads[event]
			if !ok {
				t.Errorf("%s: the test has no payload", event)
			}
			for _, sender := range []string{``, `, "sender": null`} {
				store := new(notes)
				h := &Handlers{Store: store, Now: time.Now, Log: zerolog.Nop()}
				body := fmt.Sprintf(`{%s, "repository": {"name": "widgets", "full_name": "acme/widgets", "default_branch": "main", "owner": {"login": "acme"}}%s}`, payload, sender)
				if err := h.handlerOf(event).Handle(t.Context(), event, "guid", []byte(body)); err != nil {
					t.Fatal(err)
				}
				if store.note != want {
					t.Errorf("%s%s: %q, want %q", event, sender, store.note, want)
				}
			}
		}
	}
}
