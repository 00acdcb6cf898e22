package handlers

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// payload has the fields of events that Pawl reads (GitHub: "Webhook events and payloads"). go-github's types lack some
// of these fields and take three times as long to parse.
type payload struct {
	Action       string         `json:"action"`
	Sender       feedback.Actor `json:"sender"`
	Repo         repository     `json:"repository"`
	Installation struct {
		ID      int64          `json:"id"`
		Account feedback.Actor `json:"account"` // in installation events
	} `json:"installation"`
	Changes struct {
		Body *from `json:"body"`
		Base *struct {
			Ref from `json:"ref"`
		} `json:"base"` // of a pull request
		Repo struct {
			Name from `json:"name"`
		} `json:"repository"`
		Owner struct {
			From struct {
				User         feedback.Actor `json:"user"`
				Organization feedback.Actor `json:"organization"`
			} `json:"from"`
		} `json:"owner"`
	} `json:"changes"`

	Issue   issueOrPull         `json:"issue"`
	Pull    issueOrPull         `json:"pull_request"`
	Comment forge.ReviewComment `json:"comment"` // also for comments that are not on a line
	Review  forge.Review        `json:"review"`
	Label   label               `json:"label"`
	Given   *feedback.Actor     `json:"assignee"`
	Asked   *feedback.Actor     `json:"requested_reviewer"` // absent for a team

	CheckRun        checkRunPart `json:"check_run"`
	CheckSuite      suite        `json:"check_suite"`
	RequestedAction *struct {
		Identifier string `json:"identifier"`
	} `json:"requested_action"`

	Ref     string   `json:"ref"` // of a push, or a deleted branch's name
	RefType string   `json:"ref_type"`
	Deleted bool     `json:"deleted"`
	After   string   `json:"after"`
	Compare string   `json:"compare"`
	Commits []pushed `json:"commits"`

	Repos        []repository `json:"repositories"`
	ReposAdded   []repository `json:"repositories_added"`
	ReposRemoved []repository `json:"repositories_removed"`
}

type repository struct {
	ID            int64          `json:"id"`
	Name          string         `json:"name"`
	FullName      string         `json:"full_name"`
	Owner         feedback.Actor `json:"owner"`
	DefaultBranch string         `json:"default_branch"`
	Private       bool           `json:"private"`
}

type pushed struct {
	Message  string   `json:"message"`
	Added    []string `json:"added"`
	Modified []string `json:"modified"`
	Removed  []string `json:"removed"`
}

type from struct {
	From string `json:"from"`
}

type label struct {
	Name string `json:"name"`
}

type issueOrPull struct {
	forge.Issue
	Labels []label      `json:"labels"`
	Merged bool         `json:"merged"`
	Head   forge.Branch `json:"head"`
	Base   forge.Branch `json:"base"`
}

type checkRunPart struct {
	ID          int64       `json:"id"`
	Name        string      `json:"name"`
	HeadSHA     string      `json:"head_sha"`
	ExternalID  string      `json:"external_id"`
	HTMLURL     string      `json:"html_url"`
	Conclusion  string      `json:"conclusion"`
	CompletedAt time.Time   `json:"completed_at"`
	App         forge.AppID `json:"app"`
	Suite       suite       `json:"check_suite"`
}

type suite struct {
	HeadBranch string      `json:"head_branch"`
	HeadSHA    string      `json:"head_sha"`
	App        forge.AppID `json:"app"`
	Pulls      []struct {
		Number int `json:"number"`
	} `json:"pull_requests"`
}

func (p *payload) repo() forge.Repo {
	return forge.Repo{Owner: p.Repo.Owner.Login, Name: p.Repo.Name, ID: p.Repo.ID, Installation: p.Installation.ID}
}

func (p *payload) was() (text string, ok bool) {
	if p.Changes.Body == nil {
		return "", false
	}
	return p.Changes.Body.From, true
}

// formerOwner returns the owner before a transfer; empty if unknown.
func (p *payload) formerOwner() string {
	was := p.Changes.Owner.From
	return cmp.Or(was.User.Login, was.Organization.Login)
}

func (p *payload) about(i issueOrPull, pull bool) Activity {
	var names []string
	for _, l := range i.Labels {
		names = append(names, l.Name)
	}
	it := About(p.repo(), i.Issue, pull, i.Head, i.Base)
	it.private = p.Repo.Private
	it.Target, it.MadeAt = thread.Target{Kind: "issue", ID: int64(i.Number)}, i.Updated
	it.Snapshot.DefaultBranch, it.Snapshot.Labels = p.Repo.DefaultBranch, strings.Join(names, "\n")
	return it
}

// About returns an activity whose What is unset. head and base are a pull request's branches; zero for an issue.
func About(repo forge.Repo, i forge.Issue, pull bool, head, base forge.Branch) Activity {
	return Activity{Repo: repo, Number: i.Number, URL: i.HTMLURL, created: i.Created, Snapshot: thread.Details{
		Installation: repo.Installation, RepoID: repo.ID,
		Title: i.Title, Body: i.Body, Author: i.Author.Login, URL: i.HTMLURL, Pull: pull,
		HeadRef: head.Ref, HeadSHA: head.SHA, HeadRepoID: head.Repo.ID, BaseRef: base.Ref,
	}}
}

// text returns a comment or review as a remark by the sender: its writer or, after an edit, its editor.
func (p *payload) text(source policy.Source, c forge.Comment) *feedback.Remark {
	was, hasWas := p.was()
	return &feedback.Remark{
		Source: source, Edited: p.Action == "edited", Actor: p.Sender, Author: c.Author, App: c.App.ID,
		Text: c.Body, Was: was, HasWas: hasWas,
	}
}

func read(data []byte, reader func(*payload) []Activity) ([]Activity, error) {
	var p payload
	if err := json.Unmarshal(data, &p); err != nil {
		return nil, fmt.Errorf("%w: %w", errUnparsable, err)
	}
	return reader(&p), nil
}

// withSender ignores payloads without a sender. GitHub sends null for a deleted account, which has no permission to
// check.
func withSender(read func(*payload) []Activity) func(*payload) []Activity {
	return func(p *payload) []Activity {
		all := read(p)
		if len(all) == 0 || p.Sender != (feedback.Actor{}) {
			return all
		}
		return []Activity{{What: unsent}}
	}
}

const unsent = noted(thread.KindIgnored + ": the payload names no sender")
