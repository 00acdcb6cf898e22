package forge

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/google/go-github/v60/github"
)

// Limits of check runs (GitHub's REST reference, "Create a check run").
const (
	maxActions     = 3
	maxAnnotations = 50
	maxLabel       = 20
	maxDescription = 40
	maxTitle       = 255
)

// CheckRun is what a check run shall say. The zero values of optional fields
// leave them out.
type CheckRun struct {
	Name    string
	HeadSHA string
	// ExternalID is how Pawl finds the check run again.
	ExternalID string
	// Status is queued, in_progress or completed.
	Status string
	// Conclusion belongs to completed: success, failure, neutral,
	// action_required, cancelled, skipped or timed_out.
	Conclusion string
	Title      string
	Summary    string
	Text       string
	DetailsURL string
	// Actions are the buttons; GitHub shows three, so only three are sent.
	Actions []Action
	// Annotations beyond 50 are left out, and the text says so.
	Annotations []Annotation
	StartedAt   time.Time
	CompletedAt time.Time
}

// Action is a button. GitHub takes 20 characters for Label and Identifier and
// 40 for Description.
type Action struct {
	Label       string
	Description string
	Identifier  string
}

// Annotation is a remark at lines of a file. Level is notice, warning or
// failure; an EndLine of zero means StartLine.
type Annotation struct {
	Path      string
	StartLine int
	EndLine   int
	Level     string
	Message   string
}

// CheckRunRef is a check run that exists at GitHub.
type CheckRunRef struct {
	ID         int64
	ExternalID string
	HeadSHA    string
	Status     string
	Conclusion string
	HTMLURL    string
}

func checkRunRef(r *github.CheckRun) CheckRunRef {
	return CheckRunRef{
		ID: r.GetID(), ExternalID: r.GetExternalID(), HeadSHA: r.GetHeadSHA(),
		Status: r.GetStatus(), Conclusion: r.GetConclusion(), HTMLURL: r.GetHTMLURL(),
	}
}

// CreateCheckRun makes a check run on a commit. When GitHub's answer is lost,
// name and external id tell whether it is there, so that it is not made twice.
func (c *Client) CreateCheckRun(ctx context.Context, repo Repo, run CheckRun) (CheckRunRef, error) {
	if err := run.check(); err != nil {
		return CheckRunRef{}, err
	}
	var made CheckRunRef
	err := c.on(ctx, repo, request{
		method: http.MethodPost, route: "/repos/{owner}/{repo}/check-runs", urgency: cosmetic,
		send: func(ctx context.Context, gh *github.Client) error {
			got, _, err := gh.Checks.CreateCheckRun(ctx, repo.Owner, repo.Name, run.create(c.now()))
			if err == nil && got.GetID() == 0 {
				return errEmptyAnswer
			}
			made = checkRunRef(got)
			return err
		},
		done: func(ctx context.Context) (found bool, err error) {
			made, found, err = c.FindCheckRun(ctx, repo, run.HeadSHA, run.Name, run.ExternalID)
			return found, err
		},
	})
	return made, err
}

// UpdateCheckRun replaces what a check run says: output and buttons as a
// whole, as GitHub does. HeadSHA and StartedAt cannot be changed and are not
// sent.
//
// The request may wait for its place within GitHub's limits. When it has it,
// newest is asked what the check run shall say by then, so that changes meanwhile
// need no request of their own; nil means that run stays. What newest returns must
// be good for the same check run, or run is sent.
func (c *Client) UpdateCheckRun(ctx context.Context, repo Repo, id int64, run CheckRun, newest func(context.Context) CheckRun) (CheckRunRef, error) {
	if err := run.check(); err != nil {
		return CheckRunRef{}, err
	}
	var updated CheckRunRef
	path := fmt.Sprintf("repos/%s/check-runs/%d", repo.FullName(), id)
	err := c.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/check-runs/{id}", urgency: cosmetic,
		send: func(ctx context.Context, gh *github.Client) error {
			say := run
			if newest != nil {
				if n := newest(ctx); n.Name == run.Name && n.HeadSHA == run.HeadSHA && n.check() == nil {
					say = n
				}
			}
			req, err := gh.NewRequest(http.MethodPatch, path, say.update(c.now()))
			if err != nil {
				return err
			}
			got := new(github.CheckRun)
			if _, err := gh.Do(ctx, req, got); err != nil {
				return err
			}
			updated = checkRunRef(got)
			return nil
		},
	})
	return updated, err
}

// FindCheckRun returns the newest check run of this App on a commit with the
// name and the external id.
func (c *Client) FindCheckRun(ctx context.Context, repo Repo, sha, name, externalID string) (CheckRunRef, bool, error) {
	var newest CheckRunRef
	for page := 1; page != 0 && page <= maxPages; {
		next := 0
		err := c.on(ctx, repo, request{
			method: http.MethodGet, route: "/repos/{owner}/{repo}/commits/{sha}/check-runs",
			send: func(ctx context.Context, gh *github.Client) error {
				got, resp, err := gh.Checks.ListCheckRunsForRef(ctx, repo.Owner, repo.Name, sha, &github.ListCheckRunsOptions{
					CheckName: &name, Filter: github.String("all"), AppID: &c.appID,
					ListOptions: github.ListOptions{Page: page, PerPage: pageSize},
				})
				if err != nil {
					return err
				}
				next = resp.NextPage
				if got == nil {
					return errEmptyAnswer
				}
				for _, run := range got.CheckRuns {
					own := run.GetApp().GetID() == c.appID || run.App == nil
					if own && run.GetName() == name && run.GetExternalID() == externalID && run.GetID() > newest.ID {
						newest = checkRunRef(run)
					}
				}
				return nil
			},
		})
		if err != nil {
			return CheckRunRef{}, false, err
		}
		page = next
	}
	return newest, newest.ID != 0, nil
}
