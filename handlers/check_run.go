package handlers

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/testreport"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// CheckRun handles the results of other Apps and the buttons of Pawl's own check runs,
// also that of all together. Which App it was is for policy to say.
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
	case p.CheckSuite.App.ID != 0: // every commit has a suite, also where Pawl has no check run on it
		if p.Action != "rerequested" {
			return nil
		}
		it.suite, it.Remark = true, &feedback.Remark{Source: policy.FromButton, Actor: who, Author: who, App: of.App.ID, Name: "retry", SHA: of.HeadSHA}
	case p.Action == "requested_action", p.Action == "rerequested":
		button := "retry"
		if p.Action == "requested_action" {
			if p.RequestedAction == nil {
				it.note = "the payload names no button"
				return []Activity{it}
			}
			button = p.RequestedAction.Identifier
		}
		// The external id of a check run of Pawl is such as "pawl/severity:owner/repo#n".
		_, issue, _ := strings.Cut(cr.ExternalID, ":")
		t, err := thread.Parse(issue)
		if err != nil || !strings.EqualFold(t.Repo(), p.Repo.FullName) {
			it.note = "the button belongs to no check run of this App"
			return []Activity{it}
		}
		it.thread = &t
		it.Remark = &feedback.Remark{Source: policy.FromButton, Actor: who, Author: who, App: cr.App.ID, Name: button, SHA: cr.HeadSHA}
	case p.Action == "completed":
		if it.Number == 0 {
			return nil
		}
		it.MadeAt = cr.CompletedAt
		it.check, it.job = cr.ID, cr.App.Slug == "github-actions"
		it.Remark = &feedback.Remark{Source: policy.FromCheckRun, Actor: who, App: cr.App.ID,
			Name: cr.Name, State: cr.Conclusion, SHA: cr.HeadSHA,
			Text: paragraphs(cr.Output.Title, cr.Output.Summary, cr.Output.Text)}
	default:
		return nil
	}
	return []Activity{it}
}

func paragraphs(texts ...string) string {
	var kept []string
	for _, text := range texts {
		if text = strings.TrimSpace(text); text != "" {
			kept = append(kept, text)
		}
	}
	return strings.Join(kept, "\n\n")
}

// annotated adds to what a check run says the messages that it left at lines, in
// the form that feedback.Outside reads. GitHub Actions says nothing anywhere else.
// The run counts also where GitHub does not give them.
func (h *Handlers) annotated(ctx context.Context, it Activity, text string) string {
	notes, err := h.Forge.Annotations(ctx, it.Repo, it.check)
	if err != nil {
		h.Log.Warn().Err(err).Int64("check_run", it.check).Msg("annotations not fetched")
		return paragraphs(text, fmt.Sprintf("(The annotations of this check run could not be fetched: %v)", err))
	}
	lines := make([]string, 0, len(notes))
	for _, n := range notes {
		lines = append(lines, annotation(n))
	}
	text = paragraphs(text, strings.Join(lines, "\n"))
	if it.job && feedback.Outside(text) == "" {
		text = paragraphs(text, h.logged(ctx, it))
	}
	return text
}

// logged is what a job's log says of the step that failed: the failing tests as their runner names them, and the
// log's last lines, indented, so that feedback.Outside does not take them for failures of their own.
func (h *Handlers) logged(ctx context.Context, it Activity) string {
	tests := testreport.NewReader()
	step, err := forge.ReadFailedStep(ctx, h.Forge, it.Repo, it.check, tests)
	if err != nil {
		h.Log.Warn().Err(err).Int64("check_run", it.check).Msg("log not fetched")
		return fmt.Sprintf("(The log of this job could not be fetched: %v)", err)
	}
	said := []string{fmt.Sprintf("The step %q failed; its whole log: %s", step.Name, step.URL)}
	if step.Command != "" {
		said = append(said, "  It ran: "+step.Command)
	}
	for i, f := range tests.Report().Failures {
		if i == maxNamed {
			said = append(said, "  … and more failing tests")
			break
		}
		said = append(said, "  Failing: "+strings.Join(strings.Fields(f.Name), " "))
	}
	if step.Cut > 0 {
		said = append(said, fmt.Sprintf("  (%d lines before these are left out)", step.Cut))
	}
	for _, line := range step.Lines {
		said = append(said, "  "+line)
	}
	return strings.Join(said, "\n")
}

// maxNamed is how many failing tests of a job's log are named.
const maxNamed = 20

// annotation is one as "path:line: message"; what is no failure is named so, and further lines are indented.
func annotation(n forge.Annotation) string {
	level := ""
	if n.Level == "warning" || n.Level == "notice" {
		level = n.Level + ": "
	}
	path := strings.Join(strings.Fields(n.Path), " ")
	message := strings.ReplaceAll(strings.TrimSpace(n.Message), "\n", "\n  ")
	return fmt.Sprintf("%s:%d: %s%s", path, n.StartLine, level, message)
}

// failedKey makes the failure of a check on a commit one piece of feedback, however often it is run or told.
func failedKey(sha, name string) string { return fmt.Sprintf("failed:%s:%s", sha, Digest(name)) }

// failed are the names of the checks on the last pushed commit whose failure was accepted.
func failed(s thread.State) []string {
	var names []string
	for _, f := range s.Feedback {
		if f.Source == policy.FromCheckRun && f.SHA == s.Head && f.Check != "" {
			names = append(names, f.Check)
		}
	}
	return names
}

// thread is that which a commit's checks concern: by the branch also while the pull
// request is too new to be known as the thread's.
func (s suite) thread() int {
	if n, ok := issueOfBranch(s.HeadBranch); ok {
		return n
	}
	if len(s.Pulls) > 0 {
		return s.Pulls[0].Number
	}
	return 0
}

// issueOfBranch reads the issue's number from the name of a branch of Pawl.
func issueOfBranch(branch string) (int, bool) {
	number, ok := strings.CutPrefix(branch, thread.BranchPrefix)
	if !ok {
		return 0, false
	}
	n, err := strconv.Atoi(number)
	return n, err == nil && n > 0
}
