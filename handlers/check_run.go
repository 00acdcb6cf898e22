package handlers

import (
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// CheckRun handles other Apps' results and the buttons of Pawl's check runs.
type CheckRun struct{ handler }

func checkRun(p *payload) []Activity {
	cr := p.CheckRun
	of := p.CheckSuite
	if of.App.ID == 0 {
		of = cr.Suite
	}
	it := Activity{
		Repo:     p.repo(),
		Number:   of.thread(),
		URL:      cr.HTMLURL,
		Snapshot: thread.Details{Installation: p.Installation.ID, RepoID: p.Repo.ID, DefaultBranch: p.Repo.DefaultBranch},
	}
	who := p.Sender
	switch {
	case p.CheckSuite.App.ID != 0: // every commit has suites, even without Pawl's check run
		if p.Action != "rerequested" {
			return nil
		}
		it.What = Remarked{Remark: pressed(who, of.App.ID, "retry", of.HeadSHA), suite: true}
	case p.Action == "requested_action", p.Action == "rerequested":
		p.button(&it)
	case p.Action == "completed":
		if it.Number == 0 {
			return nil
		}
		it.MadeAt = cr.CompletedAt
		it.What = Remarked{Remark: &feedback.Remark{
			Source: policy.FromCheckRun,
			Actor:  who,
			App:    cr.App.ID,
			Name:   cr.Name,
			State:  cr.Conclusion,
			SHA:    cr.HeadSHA,
		}}
		return of.each(it)
	default:
		return nil
	}
	return []Activity{it}
}

func pressed(who feedback.Actor, app int64, button, sha string) *feedback.Remark {
	return &feedback.Remark{Source: policy.FromButton, Actor: who, Author: who, App: app, Name: button, SHA: sha}
}

// button sets it.What to the pressed button. GitHub's own "Re-run" means retry.
func (p *payload) button(it *Activity) {
	cr, button := p.CheckRun, "retry"
	if p.Action == "requested_action" {
		if p.RequestedAction == nil {
			it.What = noted("the payload names no button")
			return
		}
		button = p.RequestedAction.Identifier
	}
	// Pawl's external ids look like "pawl/severity:owner/repo#n".
	_, issue, _ := strings.Cut(cr.ExternalID, ":")
	t, err := thread.Parse(issue)
	if err != nil || !strings.EqualFold(t.Repo(), p.Repo.FullName) {
		it.What = noted("the button belongs to no check run of this App")
		return
	}
	it.thread = &t
	it.What = Remarked{Remark: pressed(p.Sender, cr.App.ID, button, cr.HeadSHA)}
}

// each repeats an activity for every pull request of the branch. Pawl's own branch has one thread.
func (s suite) each(it Activity) (all []Activity) {
	if len(s.Pulls) == 0 || it.Number != s.Pulls[0].Number {
		return []Activity{it}
	}
	for _, pull := range s.Pulls {
		it.Number = pull.Number
		all = append(all, it)
	}
	return all
}

// thread returns the thread number of a commit's checks, or 0. The branch comes first, because GitHub may not list the
// pull request yet.
func (s suite) thread() int {
	if n, ok := issueOfBranch(s.HeadBranch); ok {
		return n
	}
	if len(s.Pulls) > 0 {
		return s.Pulls[0].Number
	}
	return 0
}

func issueOfBranch(branch string) (int, bool) {
	number, ok := strings.CutPrefix(branch, thread.BranchPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 0
}
