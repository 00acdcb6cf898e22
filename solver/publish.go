package solver

import (
	"context"
	"errors"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
)

// publish brings what GitHub shows into agreement with the log: the status
// comment and, where there is a commit of the thread's branch, the check runs.
// What has not changed since it was last sent is not sent again.
func (s *step) publish(ctx context.Context) (err error) {
	_, _, found := s.state.newName()
	if s.Forge == nil || !s.state.Tracked() || absent(s.state.closedBy) && !found {
		return nil
	}
	ctx, end := s.span(ctx, "publish")
	defer func() { end(err) }()
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	// Times are told as of the last change, so that the same log renders the
	// same bytes and nothing is sent again.
	v.Now = s.state.At
	return errors.Join(s.publishChecks(ctx, v), s.publishStatus(ctx, v))
}

// publishStatus writes the one status comment of the thread or edits it.
func (s *step) publishStatus(ctx context.Context, v checkrun.Facts) error {
	body := checkrun.Comment(v)
	mark := checkrun.StatusMarker(s.thread.String())
	want := hash(body)
	old, begun := s.state.Acts[actStatus]
	switch {
	case begun && old.Done && (old.Hash == want || old.Note != ""):
		return nil
	case begun && old.Done:
		c, err := s.Forge.EditComment(ctx, s.repo(), old.ID, body, mark)
		crash.Point("comment_edited")
		if err == nil {
			return s.acted(ctx, actStatus, Act{ID: c.ID, URL: c.HTMLURL, Hash: want})
		}
		if !s.deleted(ctx, err) {
			return err
		}
		// Somebody deleted it: write a new one.
		if err := s.record(ctx, KindActStarted, Act{Key: actStatus}); err != nil {
			return err
		}
		delete(s.state.Acts, actStatus)
	}
	if !begun {
		// A database that was restored may know nothing of the comment: look it up.
		if err := s.record(ctx, KindActStarted, Act{Key: actStatus}); err != nil {
			return err
		}
		s.state.Acts[actStatus] = ActState{}
	}
	err := s.act(ctx, actStatus, func() (Act, bool, error) {
		c, ok, err := s.Forge.FindComment(ctx, s.repo(), s.thread.Number, mark, s.app.BotID)
		return Act{ID: c.ID, URL: c.HTMLURL}, ok, err
	}, func() (Act, error) {
		c, err := s.Forge.CreateComment(ctx, s.repo(), s.thread.Number, body, mark)
		crash.Point("comment_written")
		if errors.Is(err, forge.ErrForbidden) {
			return Act{Note: err.Error()}, nil
		}
		return Act{ID: c.ID, URL: c.HTMLURL, Hash: want}, err
	})
	if now := s.state.Acts[actStatus]; err == nil && now.Hash != want && now.Note == "" {
		// It was found as an earlier step left it, and no later one may come.
		return s.publishStatus(ctx, v)
	}
	return err
}

// publishChecks creates or updates the check runs on the thread's head commit.
func (s *step) publishChecks(ctx context.Context, v checkrun.Facts) error {
	sha := s.state.checksOn()
	if sha == "" {
		return nil
	}
	for _, c := range checkrun.Checks(v) {
		if err := s.publishCheck(ctx, sha, c); err != nil {
			return err
		}
	}
	return s.leaveCommits(ctx, sha)
}

func (s *step) publishCheck(ctx context.Context, sha string, c checkrun.Check) error {
	sum, err := s.sumOf(c, sha)
	if err != nil {
		return err
	}
	key, want, going := checkKey(c.Name, sha), wire(c, sha, s.threadURL()), c.Status != checkrun.Completed
	old, begun := s.state.Acts[key]
	if begun && old.Done && old.ID == 0 {
		// It was given up when the head moved on, and the head came back.
		if err := s.record(ctx, KindActStarted, Act{Key: key}); err != nil {
			return err
		}
		old = ActState{}
		s.state.Acts[key] = old
	}
	if begun && old.Done {
		if old.Hash == sum {
			return nil
		}
		if !old.Going {
			// From here on it may show something that goes on, also where the log
			// does not get to hear that it does.
			if err := s.acted(ctx, key, Act{ID: old.ID, URL: old.URL, SHA: sha, Going: true}); err != nil {
				return err
			}
		}
		got, err := s.Forge.UpdateCheckRun(ctx, s.repo(), old.ID, want, func(ctx context.Context) forge.CheckRun {
			c = s.newest(ctx, sha, c)
			return wire(c, sha, s.threadURL())
		})
		crash.Point("check_updated")
		if err != nil {
			return err
		}
		if sum, err = s.sumOf(c, sha); err != nil {
			return err
		}
		return s.acted(ctx, key, Act{ID: got.ID, URL: got.HTMLURL, Hash: sum, SHA: sha, Going: c.Status != checkrun.Completed})
	}
	err = s.act(ctx, key, func() (Act, bool, error) {
		got, ok, err := s.Forge.FindCheckRun(ctx, s.repo(), sha, c.Name, c.ExternalID)
		return Act{ID: got.ID, URL: got.HTMLURL, SHA: sha, Going: true}, ok, err
	}, func() (Act, error) {
		got, err := s.Forge.CreateCheckRun(ctx, s.repo(), want)
		crash.Point("check_created")
		return Act{ID: got.ID, URL: got.HTMLURL, Hash: sum, SHA: sha, Going: going}, err
	})
	if now := s.state.Acts[key]; err == nil && now.Hash != sum {
		// It was found as an earlier step left it, and no later one may come.
		return s.publishCheck(ctx, sha, c)
	}
	return err
}

// wire is a rendered check run as the forge takes it.
func wire(c checkrun.Check, sha, details string) forge.CheckRun {
	r := forge.CheckRun{
		Name: c.Name, HeadSHA: sha, ExternalID: c.ExternalID, Status: string(c.Status), Conclusion: string(c.Conclusion),
		Title: c.Title, Summary: c.Summary, DetailsURL: details,
	}
	for _, a := range c.Actions {
		r.Actions = append(r.Actions, forge.Action{Label: a.Label, Description: a.Description, Identifier: a.Identifier})
	}
	for _, a := range c.Annotations {
		r.Annotations = append(r.Annotations, forge.Annotation{Path: a.Path, StartLine: a.StartLine, EndLine: a.EndLine, Level: a.Level, Message: a.Message})
	}
	return r
}

// shownOn is the commit that check runs are put on: the head of the pull request
// or of the thread's branch. Where nothing was pushed there yet, it is the work of
// a loop that was kept.
func (s State) shownOn() string {
	if s.Snapshot.HeadSHA != "" {
		return s.Snapshot.HeadSHA
	}
	for i := len(s.Attempts) - 1; i >= 0; i-- {
		if r := s.Attempts[i].Receipt; r.Kept != "" {
			return r.Commit
		}
	}
	return ""
}
