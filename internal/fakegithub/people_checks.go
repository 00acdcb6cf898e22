package fakegithub

import "fmt"

// CheckResult is what another App reports. Without title and summary the run has
// no output but its annotations, as those of GitHub Actions.
type CheckResult struct {
	SHA         string
	Name        string
	Conclusion  string
	Title       string
	Summary     string
	Annotations []CheckAnnotation // as many as there are; GitHub takes 50 with each request
}

// CheckAnnotation is a remark of a check run at a line. What GitHub Actions itself
// says of a job is at path ".github".
type CheckAnnotation struct {
	Path    string
	Line    int
	Level   string // notice, warning or failure; empty means failure
	Title   string // may be empty
	Message string
}

func (a CheckAnnotation) sent() obj {
	note := obj{"path": a.Path, "start_line": a.Line, "end_line": a.Line, "annotation_level": "failure", "message": a.Message}
	if a.Level != "" {
		note["annotation_level"] = a.Level
	}
	if a.Title != "" {
		note["title"] = a.Title
	}
	return note
}

// CompleteCheckRun lets another App, made with AddOtherApp, report a finished
// check run, and returns its id.
func (s *Server) CompleteCheckRun(repo, appSlug string, c CheckResult) (int64, error) {
	defer s.act()()
	r, err := s.world.repo(repo)
	if err != nil {
		return 0, err
	}
	other := s.world.otherApps[appSlug]
	if other == nil {
		return 0, fmt.Errorf("no App %q: call AddOtherApp first", appSlug)
	}
	want := checkWish{Name: &c.Name, HeadSHA: &c.SHA, Conclusion: &c.Conclusion}
	if c.Title+c.Summary != "" {
		want.Output = &checkOutput{Title: &c.Title, Summary: &c.Summary}
	}
	if bad := want.check(true); bad != nil {
		return 0, fmt.Errorf("check run %q: %s", c.Name, bad)
	}
	if want.Output == nil {
		want.Output = new(checkOutput)
	}
	for _, a := range c.Annotations {
		want.Output.Annotations = append(want.Output.Annotations, a.sent())
	}
	return s.addCheckRun(r, other, want).id, nil
}

// ClickButton presses a button of a check run, which must have it. GitHub
// documents that a button "is displayed after the check run completes"; here it
// may be pressed before, as a press can also arrive late.
func (s *Server) ClickButton(repo string, runID int64, identifier, as string) error {
	defer s.act()()
	r, run, by, err := s.onRun(repo, runID, as)
	if err != nil {
		return err
	}
	for _, a := range run.actions {
		if a.Identifier == identifier {
			s.emitOwn(r, run, "requested_action", by, obj{"requested_action": obj{"identifier": identifier}})
			return nil
		}
	}
	return fmt.Errorf("check run %q has no button %q", run.name, identifier)
}

// Rerequest asks for a check run to be done again.
func (s *Server) Rerequest(repo string, runID int64, as string) error {
	defer s.act()()
	r, run, by, err := s.onRun(repo, runID, as)
	if err == nil {
		s.emitOwn(r, run, "rerequested", by, nil)
	}
	return err
}

// emitOwn sends what GitHub sends only to the App that made the check run.
func (s *Server) emitOwn(r *repository, run *checkRun, action string, by *account, extra obj) {
	if run.suite.app == s.world.app {
		s.emitCheck(r, run, action, by, extra)
	}
}

func (s *Server) onRun(repo string, runID int64, as string) (*repository, *checkRun, *account, error) {
	r, err := s.world.repo(repo)
	if err != nil {
		return nil, nil, nil, err
	}
	run := r.run(runID)
	if run == nil {
		return nil, nil, nil, fmt.Errorf("no check run %d in %s", runID, repo)
	}
	by, err := s.world.account(as)
	return r, run, by, err
}
