package fakegithub_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/fakegithub"
)

func TestIssuesAreListedAsGitHubDocumentsIt(t *testing.T) {
	var ahead atomic.Int64
	h := newHouse(t, func(o *fakegithub.Options) {
		o.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	var second time.Time
	for i := range 4 {
		n, err := h.OpenIssue(repo, "rita", "An issue", "It is broken.")
		must(t, err)
		if i == 1 {
			second = h.Issues(repo)[n-1].UpdatedAt
		}
		ahead.Add(int64(2 * time.Second))
	}
	_, err := h.Comment(repo, 1, "rita", "More.")
	must(t, err)
	for _, tt := range []struct {
		opts github.IssueListByRepoOptions
		want string
	}{
		{github.IssueListByRepoOptions{}, "[4 3 2 1]"},
		{github.IssueListByRepoOptions{Direction: "asc"}, "[1 2 3 4]"},
		{github.IssueListByRepoOptions{Sort: "updated"}, "[1 4 3 2]"},
		{github.IssueListByRepoOptions{Sort: "updated", Direction: "asc"}, "[2 3 4 1]"},
		{github.IssueListByRepoOptions{Direction: "asc", Since: second}, "[1 2 3 4]"},
		{github.IssueListByRepoOptions{Direction: "asc", Since: second.Add(time.Second)}, "[1 3 4]"},
		{github.IssueListByRepoOptions{Direction: "asc", ListOptions: github.ListOptions{Page: 2, PerPage: 3}}, "[4]"},
	} {
		list, resp, err := h.client.Issues.ListByRepo(h.ctx, "acme", "tools", &tt.opts)
		must(t, err)
		var got []int
		for _, i := range list {
			got = append(got, i.GetNumber())
		}
		if fmt.Sprint(got) != tt.want || tt.opts.Page == 2 && (resp.PrevPage != 1 || resp.NextPage != 0) {
			t.Errorf("%+v lists %v, want %s; page before %d, after %d", tt.opts, got, tt.want, resp.PrevPage, resp.NextPage)
		}
	}
}
