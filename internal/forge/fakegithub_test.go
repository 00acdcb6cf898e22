package forge

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

// fake starts the fake GitHub that the demo uses, with one issue and a branch
// to open a pull request from, and a client with the real clock.
func fake(t *testing.T) (*fakegithub.Server, *Client, Repo, string) {
	t.Helper()
	gh, err := fakegithub.New(fakegithub.Options{AppID: testApp})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := gh.Close(); err != nil {
			t.Error(err)
		}
	})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(gh.AddUser("ann", 31, nil))
	must(gh.AddRepo(t.Context(), "octo/hello", map[string]string{"a.txt": "a\n"}))
	must(gh.SetRole("octo/hello", "ann", "maintain"))
	number, err := gh.OpenIssue("octo/hello", "ann", "Broken", "It is.")
	must(err)
	sha, err := gh.PushCommit(t.Context(), "octo/hello", "ann", fakegithub.Commit{Branch: "pawl/issue-1", Message: "Fix", Files: map[string]string{"a.txt": "b\n"}})
	must(err)
	c, err := New(Config{
		WebURL: gh.WebURL(), APIURL: gh.APIURL(), AppID: testApp, PrivateKey: gh.PrivateKeyPEM(),
		Sleep: func(ctx context.Context, _ time.Duration) error { return ctx.Err() },
	})
	must(err)
	installation, err := gh.InstallationID("octo/hello")
	must(err)
	repo := Repo{Owner: "octo", Name: "hello", Installation: installation}
	info, err := c.RepoInfo(t.Context(), repo)
	must(err)
	repo.ID = info.ID
	if number != 1 {
		t.Fatalf("the first issue is number %d", number)
	}
	return gh, c, repo, sha
}

func TestOneSolvedIssueAgainstTheFakeGitHubWithLostAnswers(t *testing.T) {
	gh, c, repo, sha := fake(t)
	for _, glob := range []string{"POST /repos/*/*/issues/*/comments", "POST /repos/*/*/check-runs", "POST /repos/*/*/pulls"} {
		gh.Inject(fakegithub.Fault{Route: glob, AbortAfter: true})
	}
	ctx := t.Context()
	if level, err := c.Permission(ctx, repo, "ann"); level != "maintain" || err != nil {
		t.Errorf("%q, %v", level, err)
	}
	if issue, err := c.Issue(ctx, repo, 1); err != nil || issue.Body != "It is." || issue.Author.ID != 31 {
		t.Errorf("%+v, %v", issue, err)
	}
	if err := c.React(ctx, repo, OnIssue, 1, "eyes"); err != nil {
		t.Error(err)
	}
	comment, err := c.CreateComment(ctx, repo, 1, "working", "<!-- pawl:status -->")
	if err != nil || comment.App.ID != testApp {
		t.Errorf("%+v, %v", comment, err)
	}
	run := CheckRun{Name: "pawl", HeadSHA: sha, ExternalID: "octo/hello#1", Status: "in_progress", Title: "T", Summary: "S"}
	check, err := c.CreateCheckRun(ctx, repo, run)
	if err != nil {
		t.Fatal(err)
	}
	run.Status, run.Conclusion = "completed", "success"
	if done, err := c.UpdateCheckRun(ctx, repo, check.ID, run, nil); err != nil || done.Conclusion != "success" {
		t.Errorf("%+v, %v", done, err)
	}
	opened, err := c.CreatePull(ctx, repo, NewPull{Title: "Fix", Head: "pawl/issue-1", Base: "main", Draft: true})
	if err != nil || !opened.Draft || opened.Head.SHA != sha {
		t.Errorf("%+v, %v", opened, err)
	}
	if _, err := c.EditComment(ctx, repo, comment.ID, "done", "<!-- pawl:status -->"); err != nil {
		t.Error(err)
	}
	if n, m, p := len(gh.Comments("octo/hello", 1)), len(gh.CheckRuns("octo/hello")), len(gh.Pulls("octo/hello")); n != 1 || m != 1 || p != 1 {
		t.Errorf("%d comments, %d check runs, %d pulls; want one of each", n, m, p)
	}
	if left := gh.ClearFaults(); left != 0 {
		t.Errorf("%d faults were not met", left)
	}
	for _, unknown := range gh.Unknown() {
		t.Errorf("no documented route: %s %s", unknown.Method, unknown.Path)
	}
}

func TestTheFakeGitHubRevokesRenamesAndUninstalls(t *testing.T) {
	gh, c, repo, _ := fake(t)
	gh.RevokeTokens()
	if _, err := c.Issue(t.Context(), repo, 1); err != nil {
		t.Errorf("after the revocation: %v", err)
	}
	if err := gh.RenameRepo("octo/hello", "world"); err != nil {
		t.Fatal(err)
	}
	var moved *Moved
	if _, err := c.CreateComment(t.Context(), repo, 1, "hello", "<!-- m -->"); !errors.As(err, &moved) || moved.To != "octo/world" {
		t.Errorf("after the renaming: %v", err)
	}
	if err := gh.Uninstall("octo/world"); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Issue(t.Context(), repo, 1); !errors.Is(err, ErrUninstalled) {
		t.Errorf("after the uninstallation: %v", err)
	}
}
