package handlers

import (
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// CheckSuite handles "Re-run all checks", the button of all checks of an App together.
type CheckSuite struct{ handler }

func checkSuite(p *payload) []Activity {
	if p.Action != "rerequested" {
		return nil
	}
	who, of := p.Sender, p.CheckSuite
	return []Activity{{
		Repo: p.repo(), Number: of.thread(),
		Snapshot: thread.Details{Installation: p.Installation.ID, RepoID: p.Repo.ID, DefaultBranch: p.Repo.DefaultBranch},
		Remark:   &feedback.Remark{Source: policy.FromButton, Actor: who, Author: who, App: of.App.ID, Name: "retry", SHA: of.HeadSHA},
	}}
}
