package fakegithub_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

func TestRefusalsHaveTheDocumentedShape(t *testing.T) {
	h := newHouse(t)
	number, _ := h.opened()
	all := readShapes(t)
	_, err := h.OpenIssue(repo, "rita", "an issue", "")
	must(t, err)
	long := strings.Repeat("é", 65537)
	app, inst, reader := h.app.Client(), h.client.Client(), h.userClient("rita").Client()
	stranger, nobody := h.userClient("noone").Client(), http.DefaultClient
	const checks = "POST /repos/acme/tools/check-runs"
	head := h.Branches(repo)["work"]
	id, err := h.InstallationID(repo)
	must(t, err)
	grant := fmt.Sprintf("POST /app/installations/%d/access_tokens", id)
	for _, c := range []struct {
		as         *http.Client
		call, body string
		status     int
		message    string
	}{
		{nobody, "GET /repos/acme/tools", "", 404, "Not Found"},
		{nobody, "GET /app", "", 401, "A JSON web token could not be decoded"},
		{stranger, "GET /repos/acme/tools", "", 404, "Not Found"},
		{inst, "GET /app", "", 401, "A JSON web token could not be decoded"},
		{inst, "GET /repos/acme/none", "", 404, "Not Found"},
		{inst, "GET /repos/acme/tools/issues/99", "", 404, "Not Found"},
		{inst, "GET /repos/acme/tools/collaborators/nobody-at-all/permission", "", 404, "is not a user"},
		{inst, "GET /repos/acme/tools/commits/none/check-runs", "", 422, "No commit found for SHA: none"},
		{inst, "POST /repos/acme/tools/issues/1/comments", `{"body": `, 400, "Problems parsing JSON"},
		{inst, "POST /repos/acme/tools/issues/1/comments", `{"body": 7}`, 422, "Invalid request.\n\nFor 'properties/body', number is not a string."},
		{inst, "POST /repos/acme/tools/issues/1/comments", `{}`, 422, `"body" wasn't supplied.`},
		{inst, "POST /repos/acme/tools/issues/1/comments", `{"body": "` + long + `"}`, 422, "Validation Failed"},
		{inst, "PATCH /repos/acme/tools/issues/1", `{"body": "` + long + `"}`, 422, "Validation Failed"},
		{inst, "POST /repos/acme/tools/issues/1/reactions", `{"content": "clap"}`, 422, "Validation Failed"},
		{inst, "POST /repos/acme/tools/pulls", `{"title": "t", "head": "work", "base": "main"}`, 422, "Validation Failed"},
		{inst, "POST /repos/acme/tools/pulls", `{"title": "t", "head": "main", "base": "main"}`, 422, "Validation Failed"},
		{inst, checks, `{"name": "x", "head_sha": "` + head + `", "status": "completed"}`, 422, `"conclusion" wasn't supplied.`},
		{inst, checks, `{"name": "x", "head_sha": "` + strings.Repeat("0", 40) + `"}`, 422, "No commit found for SHA"},
		{reader, checks, `{"name": "x", "head_sha": "` + head + `"}`, 403, "You must authenticate via a GitHub App."},
		{app, "POST /app/installations/99/access_tokens", "", 404, "Not Found"},
		{app, grant, `{"permissions": {"workflows": "write"}}`, 422, "The permissions requested are not granted to this installation."},
		{app, grant, `{"repository_ids": [1]}`, 422, "There is at least one repository that does not exist"},
		{app, grant, `{"repository_ids": [` + strings.Repeat("1,", 500) + `1]}`, 422, "No more than 500 items are allowed"},
		{app, "GET /app/hook/deliveries?cursor=what", "", 400, "Invalid cursor"},
	} {
		method, path, _ := strings.Cut(c.call, " ")
		resp, raw := h.wire(c.as, method, path, c.body)
		body := decodeExactly(t, raw)
		message, _ := body.(map[string]any)["message"].(string)
		if resp.StatusCode != c.status || !strings.Contains(message, c.message) {
			t.Errorf("%s %.60s: got %d %q, want %d %q", c.call, c.body, resp.StatusCode, message, c.status, c.message)
		}
		kind := "basic-error"
		if message == "Validation Failed" {
			kind = "validation-error"
		}
		for _, problem := range all.check("body", body, kind) {
			t.Errorf("%s: %s", c.call, problem)
		}
	}
	if got := h.Issues(repo)[number-1]; len(got.Labels) != 0 || got.Body != "" {
		t.Errorf("a refused request changed something: %+v", got)
	}
}

func TestAnAnswerNamesTheAcceptedPermissions(t *testing.T) {
	h := newHouse(t)
	resp, _ := h.wire(h.client.Client(), "POST", "/repos/"+repo+"/issues/1/comments", `{"body": "x"}`)
	if got := resp.Header.Get("X-Accepted-GitHub-Permissions"); got != "issues=write; pull_requests=write" {
		t.Fatal(got)
	}
}
