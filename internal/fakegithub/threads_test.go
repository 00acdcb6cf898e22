package fakegithub_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"
)

func TestIssueLifecycleSendsEvents(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "first text", "bug")
	must(t, err)
	must(t, h.EditBody(repo, n, "rita", "second text"))
	must(t, h.EditBody(repo, n, "rita", "second text"))
	must(t, h.EditTitle(repo, n, "wendy", "It breaks often"))
	must(t, h.AddLabel(repo, n, "wendy", "pawl"))
	must(t, h.RemoveLabel(repo, n, "wendy", "pawl"))
	must(t, h.TouchIssue(repo, n, "wendy"))
	must(t, h.CloseIssue(repo, n, "wendy"))
	must(t, h.ReopenIssue(repo, n, "wendy"))
	var got []string
	for _, k := range h.settled("issues") {
		from, _ := k.at("changes", "body", "from").(string)
		got = append(got, strings.TrimSpace(k.action()+" by "+k.at("sender", "login").(string)+" "+from))
	}
	want := []string{"opened by rita", "labeled by rita", "edited by rita first text", "edited by rita second text", "edited by wendy",
		"labeled by wendy", "unlabeled by wendy", "assigned by wendy", "closed by wendy", "reopened by wendy"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Fatal(diff)
	}
	issue, _, err := h.client.Issues.Get(h.ctx, "acme", "tools", n)
	must(t, err)
	if issue.GetBody() != "second text" || issue.GetTitle() != "It breaks often" || issue.GetState() != "open" || issue.IsPullRequest() ||
		issue.GetAuthorAssociation() != "MEMBER" || len(issue.Labels) != 1 {
		t.Fatalf("%v", issue)
	}
}

func TestAppsCommentIsDeliveredAsTheBots(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "")
	must(t, err)
	made, resp, err := h.client.Issues.CreateComment(h.ctx, "acme", "tools", n, &github.IssueComment{Body: github.String("on it <b>")})
	must(t, err)
	if resp.StatusCode != 201 || made.GetUser().GetLogin() != "pawl[bot]" {
		t.Fatalf("%d %v", resp.StatusCode, made)
	}
	_, _, err = h.client.Issues.EditComment(h.ctx, "acme", "tools", made.GetID(), &github.IssueComment{Body: github.String("done")})
	must(t, err)
	_, _, err = h.client.Issues.EditComment(h.ctx, "acme", "tools", made.GetID(), &github.IssueComment{Body: github.String("done")})
	must(t, err)
	hooks := h.settled("issue_comment")
	var actions []string
	for _, k := range hooks {
		actions = append(actions, k.action())
		if k.at("sender", "type") != "Bot" || k.at("comment", "performed_via_github_app", "id") != float64(7) || k.at("installation", "id") == nil ||
			k.at("repository", "owner", "login") != "acme" || k.at("comment", "author_association") != "NONE" {
			t.Errorf("%s", k.raw)
		}
	}
	if diff := cmp.Diff([]string{"created", "edited"}, actions); diff != "" {
		t.Fatal(diff)
	}
	if hooks[1].at("changes", "body", "from") != "on it <b>" {
		t.Fatalf("changes: %v", hooks[1].at("changes"))
	}
}

func TestUserTokenActsAsTheUser(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "")
	must(t, err)
	_, _, err = h.userClient("wendy").Issues.CreateComment(h.ctx, "acme", "tools", n, &github.IssueComment{Body: github.String("by an agent")})
	must(t, err)
	hooks := h.settled("issue_comment")
	if len(hooks) != 1 || hooks[0].at("sender", "login") != "wendy" || hooks[0].at("comment", "performed_via_github_app") != nil {
		t.Fatalf("%v", hooks)
	}
	comments := h.Comments(repo, n)
	if len(comments) != 1 || comments[0].ViaApp || comments[0].Author != "wendy" {
		t.Fatalf("%+v", comments)
	}
	id := comments[0].ID
	_, _, err = h.userClient("rita").Issues.EditComment(h.ctx, "acme", "tools", id, &github.IssueComment{Body: github.String("no")})
	wantStatus(t, err, 403, "Must have")
	must(t, h.EditComment(repo, id, "wendy", "better"))
}

func TestTextsAreValidated(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "")
	must(t, err)
	post := func(body string) error {
		_, _, err := h.client.Issues.CreateComment(h.ctx, "acme", "tools", n, &github.IssueComment{Body: &body})
		return err
	}
	must(t, post(strings.Repeat("é", 65536)))
	wantStatus(t, post(strings.Repeat("é", 65537)), 422, "body is too long (maximum is 65536 characters)")
	wantStatus(t, post(" "), 422, "Body cannot be blank")
	_, _, err = h.client.Issues.Edit(h.ctx, "acme", "tools", n, &github.IssueRequest{Title: github.String("")})
	wantStatus(t, err, 422, "missing_field")
	_, _, err = h.client.Issues.Get(h.ctx, "acme", "tools", 99)
	wantStatus(t, err, 404, "Not Found")
	status, _, body := h.do("POST", "repos/acme/tools/issues/1/comments", "{", map[string][]string{"Authorization": {"Bearer " + h.installationToken()}})
	if status != 400 || !strings.Contains(body, "Problems parsing JSON") {
		t.Fatalf("%d %s", status, body)
	}
}

func TestPermissionsAreEnforced(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "")
	must(t, err)
	pulls := h.installationClient(&github.InstallationPermissions{PullRequests: github.String("write")})
	_, _, err = pulls.Issues.CreateComment(h.ctx, "acme", "tools", n, &github.IssueComment{Body: github.String("x")})
	wantStatus(t, err, 403, "Resource not accessible by integration")
	reader := h.installationClient(&github.InstallationPermissions{Issues: github.String("read")})
	_, _, err = reader.Issues.Get(h.ctx, "acme", "tools", n)
	must(t, err)
	_, _, err = reader.Reactions.CreateIssueReaction(h.ctx, "acme", "tools", n, "eyes")
	wantStatus(t, err, 403, "Resource not accessible by integration")
}

func TestRepeatedReactionIsStoredOnce(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "It breaks", "")
	must(t, err)
	id, err := h.Comment(repo, n, "rita", "/pawl solve")
	must(t, err)
	var codes []int
	for range 2 {
		_, resp, err := h.client.Reactions.CreateIssueCommentReaction(h.ctx, "acme", "tools", id, "eyes")
		must(t, err)
		codes = append(codes, resp.StatusCode)
	}
	if diff := cmp.Diff([]int{201, 200}, codes); diff != "" {
		t.Fatal(diff)
	}
	_, _, err = h.client.Reactions.CreateIssueReaction(h.ctx, "acme", "tools", n, "thumbs")
	wantStatus(t, err, 422, "Validation Failed")
	if diff := cmp.Diff([]string{"eyes by pawl[bot]"}, h.Comments(repo, n)[0].Reactions); diff != "" {
		t.Fatal(diff)
	}
}
