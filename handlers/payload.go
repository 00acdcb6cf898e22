package handlers

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
)

// payload is what Pawl reads of an event; which parts an event has is in GitHub's
// "Webhook events and payloads". go-github's types hold everything GitHub sends,
// but not the App through which a text was written nor a review's edit, and reading
// into them takes three times as long as this does.
type payload struct {
	Action       string     `json:"action"`
	Sender       user       `json:"sender"`
	Repo         repository `json:"repository"`
	Installation struct {
		ID      int64 `json:"id"`
		Account user  `json:"account"` // in events about the installation itself
	} `json:"installation"`
	Changes struct {
		Body *from `json:"body"`
		Repo struct {
			Name from `json:"name"`
		} `json:"repository"`
	} `json:"changes"`

	Issue   issueOrPull `json:"issue"`
	Number  int         `json:"number"` // of the pull request
	Pull    issueOrPull `json:"pull_request"`
	Comment comment     `json:"comment"`
	Review  comment     `json:"review"`
	Label   label       `json:"label"`

	CheckRun        checkRunPart `json:"check_run"`
	RequestedAction *struct {
		Identifier string `json:"identifier"`
	} `json:"requested_action"`

	Ref     string `json:"ref"` // of a push, or a deleted branch's name
	RefType string `json:"ref_type"`
	Deleted bool   `json:"deleted"`
	After   string `json:"after"`
	Compare string `json:"compare"`
	Commits []struct {
		Message string `json:"message"`
	} `json:"commits"`

	Repos        []repository `json:"repositories"`
	ReposAdded   []repository `json:"repositories_added"`
	ReposRemoved []repository `json:"repositories_removed"`
}

type user struct {
	ID    int64  `json:"id"`
	Login string `json:"login"`
	Type  string `json:"type"`
}

func (u user) actor() policy.Actor { return policy.Actor{ID: u.ID, Login: u.Login, Type: u.Type} }

type repository struct {
	ID            int64  `json:"id"`
	Name          string `json:"name"`
	FullName      string `json:"full_name"`
	Owner         user   `json:"owner"`
	DefaultBranch string `json:"default_branch"`
}

// from is a value before an edit.
type from struct {
	From string `json:"from"`
}

type label struct {
	Name string `json:"name"`
}

// via is the App through which a text was written; a person's own has none.
type via struct {
	App struct {
		ID int64 `json:"id"`
	} `json:"performed_via_github_app"`
}

// issueOrPull is an issue or a pull request.
type issueOrPull struct {
	via
	Number    int       `json:"number"`
	Title     string    `json:"title"`
	Body      string    `json:"body"`
	User      user      `json:"user"`
	HTMLURL   string    `json:"html_url"`
	Labels    []label   `json:"labels"`
	UpdatedAt time.Time `json:"updated_at"`
	ClosedAt  time.Time `json:"closed_at"`

	PullLinks *struct{} `json:"pull_request"` // an issue that is a pull request has them
	Merged    bool      `json:"merged"`
	Head      side      `json:"head"`
	Base      side      `json:"base"`
}

// side is the head or the base of a pull request.
type side struct {
	Ref  string     `json:"ref"`
	SHA  string     `json:"sha"`
	Repo repository `json:"repo"`
}

// comment is a comment, a review, or a review's remark on a line.
type comment struct {
	via
	ID          int64     `json:"id"`
	Body        string    `json:"body"`
	User        user      `json:"user"`
	HTMLURL     string    `json:"html_url"`
	UpdatedAt   time.Time `json:"updated_at"`
	SubmittedAt time.Time `json:"submitted_at"` // of a review
	State       string    `json:"state"`        // of a review
	CommitID    string    `json:"commit_id"`
	Path        string    `json:"path"`
	Line        int       `json:"line"`
}

type checkRunPart struct {
	ID          int64     `json:"id"`
	Name        string    `json:"name"`
	HeadSHA     string    `json:"head_sha"`
	ExternalID  string    `json:"external_id"`
	HTMLURL     string    `json:"html_url"`
	Conclusion  string    `json:"conclusion"`
	CompletedAt time.Time `json:"completed_at"`
	App         struct {
		ID int64 `json:"id"`
	} `json:"app"`
	Output struct {
		Title   string `json:"title"`
		Summary string `json:"summary"`
		Text    string `json:"text"`
	} `json:"output"`
	Pulls []struct {
		Number int `json:"number"`
	} `json:"pull_requests"`
	Suite struct {
		HeadBranch string `json:"head_branch"`
	} `json:"check_suite"`
}

// repo is where the event happened.
func (p *payload) repo() forge.Repo {
	return forge.Repo{Owner: p.Repo.Owner.Login, Name: p.Repo.Name, ID: p.Repo.ID, Installation: p.Installation.ID}
}

// was returns the text before an edit.
func (p *payload) was() (text string, ok bool) {
	if p.Changes.Body == nil {
		return "", false
	}
	return p.Changes.Body.From, true
}

// read parses a payload with the reader of its event, which has a file of its own.
// Of other events only the form is checked.
func read(event string, data []byte) ([]happening, error) {
	var reader func(*payload) []happening
	switch event {
	case "issue_comment":
		reader = issueComment
	case "issues":
		reader = issues
	case "pull_request":
		reader = pullRequest
	case "pull_request_review":
		reader = pullRequestReview
	case "pull_request_review_comment":
		reader = pullRequestReviewComment
	case "check_run":
		reader = checkRun
	case "push":
		reader = push
	case "delete":
		reader = branchDeleted
	case "installation":
		reader = installation
	case "installation_repositories":
		reader = installationRepositories
	case "repository":
		reader = repositoryChanged
	default:
		if github.EventForType(event) == nil {
			return nil, &UnparsableError{fmt.Errorf("unknown event %q", event)}
		}
		if err := json.Unmarshal(data, &struct{}{}); err != nil {
			return nil, &UnparsableError{err}
		}
		return nil, nil
	}
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, &UnparsableError{err}
	}
	return reader(&p), nil
}
