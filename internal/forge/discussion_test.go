package forge

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

const graphFake = "POST /graphql"

func TestDiscussionIsReadNewestFirst(t *testing.T) {
	h, c := start(t)
	for i := range 230 {
		_, err := h.Comment(fullName, 1, "ann", fmt.Sprintf("comment %d", i))
		h.must(err)
	}
	for bytes, want := range map[int]int{0: 100, 1500: 200, 1 << 20: 230} {
		d, err := c.Discussions.Read(t.Context(), h.repo, 1, bytes)
		if err != nil {
			t.Fatal(err)
		}
		all := d.Comments
		if d.Title != "Broken" || all.Total != 230 || len(all.Nodes) != want || all.Nodes[0].Text != fmt.Sprintf("comment %d", 230-want) || all.Nodes[want-1].Text != "comment 229" {
			t.Errorf("%d bytes: %q, %d of %d comments; want the newest %d", bytes, d.Title, len(all.Nodes), all.Total, want)
		}
		if first := all.Nodes[0]; first.By.Account() != "ann" || first.By.Bot() || first.ID == 0 || first.At.IsZero() || !first.Edited.IsZero() {
			t.Errorf("%+v", first)
		}
	}
}

func TestDiscussionIsRetriedForLaggingReplica(t *testing.T) {
	lag := status(200, `{"data": {"repository": {"found": null}}, "errors": [{"type": "NOT_FOUND", "message": "Could not resolve to an issue."}]}`)
	for lags, want := range map[int]error{1: nil, 3: ErrNotFound} {
		h, c := start(t)
		for range lags {
			h.fail(graphFake, lag)
		}
		if d, err := c.Discussions.Read(t.Context(), h.repo, 1, 0); !errors.Is(err, want) || err == nil && d.Title != "Broken" {
			t.Errorf("%d times not found: %q, %v; want %v", lags, d.Title, err, want)
		}
	}
}

func TestAPullRequestsDiscussionHasItsReviewsFilesAndCommits(t *testing.T) {
	h, c := start(t)
	h.must(h.AddUser("bob", 32, map[string]string{fullName: "write"}))
	push := func(branch, message string, files map[string]string) {
		_, err := h.PushCommit(t.Context(), fullName, "ann", fakegithub.Commit{Branch: branch, Message: message, Files: files})
		h.must(err)
	}
	push("main", "Begin", map[string]string{"a.txt": "one\n"})
	push("work", "Add a line\n\nAnd why.", map[string]string{"a.txt": "one\ntwo\n", "b.txt": "b\n"})
	n, err := h.OpenPull(t.Context(), fullName, "ann", fakegithub.PullRequest{Title: "Work", Body: "Fixes #1", Head: "work"})
	h.must(err)
	id, err := h.Comment(fullName, n, "ann", "First")
	h.must(err)
	h.clock.Sleep(t.Context(), time.Hour)
	h.must(h.EditComment(fullName, id, "ann", "First, edited"))
	_, err = h.Review(fullName, n, "bob", "CHANGES_REQUESTED", "Not yet")
	h.must(err)
	_, err = h.ReviewComment(t.Context(), fullName, n, "bob", "a.txt", 2, "Why two?")
	h.must(err)
	d, err := c.Discussions.Read(t.Context(), h.repo, n, 0)
	if err != nil {
		t.Fatal(err)
	}
	if comment := d.Comments.Nodes[0]; comment.Text != "First, edited" || comment.Edited.Sub(comment.At) != time.Hour {
		t.Errorf("%+v", comment)
	}
	if v := d.Reviews.Nodes[0]; v.Text != "Not yet" || v.State != "CHANGES_REQUESTED" || v.By.Account() != "bob" {
		t.Errorf("%+v", v)
	}
	thread := d.Threads.Nodes[0]
	if thread.Path != "a.txt" || thread.Line != 2 || thread.Side != "RIGHT" || thread.Resolved || thread.ID == "" ||
		thread.Comments.Nodes[0].Text != "Why two?" || !strings.Contains(thread.Comments.Nodes[0].Hunk, "+two") {
		t.Errorf("%+v", thread)
	}
	if diff := cmp.Diff([]ChangedFile{{"a.txt", 1, 0, "MODIFIED"}, {"b.txt", 1, 0, "ADDED"}}, d.Files.Nodes); diff != "" {
		t.Error(diff)
	}
	if len(d.Commits.Nodes) != 1 || d.Commits.Nodes[0].Commit.Headline != "Add a line" || d.Closes.Nodes[0].Number != 1 {
		t.Errorf("%+v, closes %+v", d.Commits, d.Closes)
	}
}

func TestUnknownLinkedThreadsAreLeftOut(t *testing.T) {
	h, c := start(t)
	_, err := h.OpenIssue(fullName, "ann", "Another", "Of it.")
	h.must(err)
	all, err := c.Discussions.Linked(t.Context(), h.repo, []int{2, 99, 1})
	if err != nil || len(all) != 2 || all[2].Title != "Another" || all[1].Body != "It is." || all[1].Closed {
		t.Errorf("%+v, %v", all, err)
	}
	if none, err := c.Discussions.Linked(t.Context(), h.repo, nil); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

func TestAQueryIsARead(t *testing.T) {
	h, c := start(t)
	if _, err := c.Apps.Token(t.Context(), h.repo); err != nil { // requesting a token is a write
		t.Fatal(err)
	}
	fenced := c.Fenced(func(context.Context) error { return errors.New("no writes") })
	if _, err := fenced.Discussions.Read(t.Context(), h.repo, 1, 0); err != nil {
		t.Error(err)
	}
}

func TestRefusedQueryGivesTheReason(t *testing.T) {
	h, c := start(t)
	if _, err := c.Discussions.Read(t.Context(), h.repo, 99, 0); !errors.Is(err, ErrNotFound) {
		t.Errorf("an issue that does not exist: %v", err)
	}
	for body, want := range map[string]error{
		`{"data": null, "errors": [{"type": "FORBIDDEN", "message": "Resource not accessible by integration"}]}`: ErrForbidden,
		`{"errors": [{"message": "Field 'x' doesn't exist on type 'Issue'"}]}`:                                   ErrInvalid,
	} {
		h.Inject(answering(body))
		if _, err := c.Discussions.Read(t.Context(), h.repo, 1, 0); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", body, err, want)
		}
	}
	h.Inject(answering(`{"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}`))
	if _, err := c.Discussions.Read(t.Context(), h.repo, 1, 0); err == nil || !errors.As(err, new(*RateLimited)) {
		t.Errorf("a limit: %v", err)
	}
}

// answering answers a query with a fixed text.
func answering(body string) fakegithub.Fault {
	return fakegithub.Fault{Route: graphFake, Answer: func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}}
}

func TestOnlyPicturesOnGitHubAreRead(t *testing.T) {
	for api, want := range map[string]map[string]bool{
		"https://api.github.com/": {
			"https://private-user-images.githubusercontent.com/1/2.png?jwt=x": true, "https://user-images.githubusercontent.com/1/2.png": true,
			"http://user-images.githubusercontent.com/1/2.png": false, "https://camo.githubusercontent.com/0/1": false,
			"https://user-images.githubusercontent.com.example.org/1": false, "https://x@127.0.0.1/1.png": false, "/relative.png": false, "data:image/png;base64,aaaa": false, "https://%zz": false,
		},
		"https://ghe.example.org/api/v3/": {
			"https://ghe.example.org/user-attachments/assets/1?jwt=x": true, "https://media.ghe.example.org/1": true,
			"https://ghe.example.org:8443/1": false, "https://notghe.example.org/1": false, "https://user-images.githubusercontent.com/1/2.png": false,
		},
	} {
		base, err := url.Parse(api)
		if err != nil {
			t.Fatal(err)
		}
		for address, keeps := range want {
			if got := (Discussions{&Client{api: base}}).keeps(address); got != keeps {
				t.Errorf("%s with the API %s: %v, want %v", address, api, got, keeps)
			}
		}
	}
}
