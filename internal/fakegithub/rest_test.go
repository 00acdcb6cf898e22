package fakegithub_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-github/v60/github"
)

func (h *house) do(method, path, body string, header http.Header) (int, http.Header, string) {
	h.t.Helper()
	req, err := http.NewRequestWithContext(h.ctx, method, h.APIURL()+path, strings.NewReader(body))
	must(h.t, err)
	req.Header = header
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := client.Do(req)
	must(h.t, err)
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	must(h.t, err)
	return resp.StatusCode, resp.Header, string(answer)
}

func TestListsArePagedWithLinks(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "many", "")
	must(t, err)
	for range 25 {
		_, err := h.Comment(repo, n, "rita", "again")
		must(t, err)
	}
	var pages []int
	opts := &github.IssueListCommentsOptions{ListOptions: github.ListOptions{PerPage: 10}}
	for {
		list, resp, err := h.client.Issues.ListComments(h.ctx, "acme", "tools", n, opts)
		must(t, err)
		pages = append(pages, len(list))
		if resp.NextPage == 0 {
			break
		}
		opts.Page = resp.NextPage
	}
	if diff := cmp.Diff([]int{10, 10, 5}, pages); diff != "" {
		t.Fatal(diff)
	}
}

func TestAnUnchangedAnswerIs304AndFree(t *testing.T) {
	h := newHouse(t)
	auth := http.Header{"Authorization": {"Bearer " + h.installationToken()}}
	status, first, _ := h.do("GET", "repos/acme/tools", "", auth)
	if status != 200 || first.Get("ETag") == "" || first.Get("X-GitHub-Request-Id") == "" || first.Get("X-RateLimit-Limit") != "5000" {
		t.Fatalf("%d %v", status, first)
	}
	auth.Set("If-None-Match", first.Get("ETag"))
	status, second, body := h.do("GET", "repos/acme/tools", "", auth)
	if status != 304 || body != "" || second.Get("X-RateLimit-Used") != first.Get("X-RateLimit-Used") {
		t.Fatalf("%d %q, used %s after %s", status, body, second.Get("X-RateLimit-Used"), first.Get("X-RateLimit-Used"))
	}
	_, err := h.OpenIssue(repo, "rita", "new", "")
	must(t, err)
	if status, _, _ = h.do("GET", "repos/acme/tools", "", auth); status != 200 {
		t.Fatalf("after a change: %d", status)
	}
}

func TestUnknownRoutesAreRecorded(t *testing.T) {
	h := newHouse(t)
	status, body := h.get("repos/acme/tools/weather", "Bearer "+h.installationToken())
	if status != 404 || !strings.Contains(body, `"message":"Not Found"`) {
		t.Fatalf("%d %s", status, body)
	}
	unknown := h.Unknown()
	if len(unknown) != 1 || unknown[0].Path != "/repos/acme/tools/weather" || !strings.HasPrefix(unknown[0].Caller, "installation:") {
		t.Fatalf("%+v", unknown)
	}
}

func TestRequestLogNamesRoutesWithoutCredentials(t *testing.T) {
	h := newHouse(t)
	token := h.installationToken()
	if _, err := h.git("", token, "ls-remote", h.WebURL()+"/"+repo+".git"); err != nil {
		t.Fatal(err)
	}
	_, _, err := h.client.Repositories.Get(h.ctx, "acme", "tools")
	must(t, err)
	for _, r := range h.Requests() {
		if strings.Contains(r.Query+r.Body+r.Path, token) {
			t.Errorf("the log holds a token: %+v", r)
		}
	}
	calls := h.Calls()
	for _, route := range []string{"GET /repos/{owner}/{repo}", "GET /{owner}/{repo}.git/info/refs", "POST /app/installations/{id}/access_tokens"} {
		if calls[route] == 0 {
			t.Errorf("no call of %s in %v", route, calls)
		}
	}
}

func TestARenamedRepositoryRedirects(t *testing.T) {
	h := newHouse(t)
	n, err := h.OpenIssue(repo, "rita", "here", "")
	must(t, err)
	must(t, h.RenameRepo(repo, "kit"))
	got, resp, err := h.client.Repositories.Get(h.ctx, "acme", "tools")
	must(t, err)
	if got.GetFullName() != "acme/kit" || !strings.Contains(resp.Request.URL.Path, "/repositories/") {
		t.Fatalf("%s over %s", got.GetFullName(), resp.Request.URL)
	}
	_, _, err = h.client.Issues.CreateComment(h.ctx, "acme", "tools", n, &github.IssueComment{Body: github.String("hi")})
	must(t, err)
	auth := http.Header{"Authorization": {"Bearer " + h.installationToken()}}
	if status, _, _ := h.do("GET", "repos/acme/tools/issues/1", "", auth); status != 301 {
		t.Fatalf("read: %d", status)
	}
	if status, _, _ := h.do("POST", "repos/acme/tools/issues/1/comments", `{"body":"x"}`, auth); status != 307 {
		t.Fatalf("write: %d", status)
	}
	if out, err := h.git("", h.installationToken(), "ls-remote", h.WebURL()+"/"+repo+".git"); err != nil {
		t.Fatalf("git over the former name: %v %s", err, out)
	}
	renamed := h.settled("repository")
	if len(renamed) != 1 || renamed[0].at("changes", "repository", "name", "from") != "tools" {
		t.Fatalf("%v", renamed)
	}
	must(t, h.DeleteRepo("acme/kit"))
	if status, _, _ := h.do("GET", "repos/acme/kit", "", auth); status != 404 {
		t.Fatalf("deleted: %d", status)
	}
}
