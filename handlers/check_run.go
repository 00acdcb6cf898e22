package handlers

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// checkRun reads the results of other Apps and the buttons of Pawl's own check
// runs. Which App it was is for policy to say.
func checkRun(p *github.CheckRunEvent) []happening {
	cr := p.GetCheckRun()
	r := p.GetRepo()
	hp := happening{
		repo:     repo(r, p.GetInstallation()),
		number:   checkRunThread(cr),
		url:      cr.GetHTMLURL(),
		snapshot: solver.Snapshot{Installation: p.GetInstallation().GetID(), RepoID: r.GetID(), DefaultBranch: r.GetDefaultBranch()},
	}
	who := actor(p.GetSender())
	switch p.GetAction() {
	case "requested_action", "rerequested":
		button := "retry"
		if p.GetAction() == "requested_action" {
			if p.RequestedAction == nil {
				hp.note = "the payload names no button"
				return []happening{hp}
			}
			button = p.RequestedAction.Identifier
		}
		t, err := threadOfExternalID(cr.GetExternalID())
		if err != nil || !strings.EqualFold(t.Repo(), r.GetFullName()) {
			hp.note = "the button belongs to no check run of this App"
			return []happening{hp}
		}
		hp.thread = &t
		hp.remark = &policy.Remark{Source: policy.FromButton, Actor: who, Author: who, App: cr.GetApp().GetID(), Name: button, SHA: cr.GetHeadSHA()}
	case "completed":
		if hp.number == 0 {
			return nil
		}
		hp.madeAt = cr.GetCompletedAt().Time
		out := cr.GetOutput()
		hp.remark = &policy.Remark{Source: policy.FromCheckRun, Actor: who, App: cr.GetApp().GetID(),
			Name: cr.GetName(), State: cr.GetConclusion(), SHA: cr.GetHeadSHA(),
			Text: fmt.Sprintf("Check run %q: %s\n\n%s\n\n%s\n\n%s", cr.GetName(), cr.GetConclusion(), out.GetTitle(), out.GetSummary(), out.GetText())}
	default:
		return nil
	}
	return []happening{hp}
}

// checkRunThread finds the number of the thread that a check run is about: the
// pull request GitHub names, else the issue whose branch it ran on.
func checkRunThread(cr *github.CheckRun) int {
	if cr != nil && len(cr.PullRequests) > 0 {
		return cr.PullRequests[0].GetNumber()
	}
	n, _ := issueOfBranch(cr.GetCheckSuite().GetHeadBranch())
	return n
}

// issueOfBranch reads the issue's number from the name of a branch of Pawl.
func issueOfBranch(branch string) (int, bool) {
	number, ok := strings.CutPrefix(branch, solver.BranchPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 0
}

// threadOfExternalID reads the thread from the external id of a check run of
// Pawl, such as "pawl/severity:owner/repo#n".
func threadOfExternalID(id string) (solver.Thread, error) {
	_, thread, _ := strings.Cut(id, ":")
	return solver.ParseThread(thread)
}
