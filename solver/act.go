package solver

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/forge"
)

// An act is logged before and after it is done. When the log holds only the
// beginning, it may have happened, and it is looked up at GitHub first.

// act does one thing under its key. It looks up first when an earlier try may
// have succeeded, and does nothing when it is done already.
func (s *step) act(ctx context.Context, key string, find func() (Act, bool, error), do func() (Act, error)) error {
	before, begun := s.state.Acts[key]
	if begun && before.Done {
		return nil
	}
	if begun {
		found, ok, err := find()
		if err != nil {
			return fmt.Errorf("look up %s: %w", key, err)
		}
		if ok {
			return s.acted(ctx, key, found)
		}
	} else if err := s.record(ctx, KindActStarted, Act{Key: key}); err != nil {
		return err
	}
	crash.Point("act_begun")
	done, err := do()
	if err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return s.acted(ctx, key, done)
}

// acted logs that an act was done, and keeps the step's own state current.
func (s *step) acted(ctx context.Context, key string, a Act) error {
	a.Key = key
	if err := s.record(ctx, KindActDone, a); err != nil {
		return err
	}
	crash.Point("act_logged")
	s.state.Acts[key] = ActState{Act: a, Done: true, At: s.Now()}
	if key == actPull {
		s.state.Pull = int(a.ID)
	}
	return nil
}

// acknowledge puts a 👀 reaction on everything that Pawl listens to and has not
// acknowledged.
func (s *step) acknowledge(ctx context.Context) error {
	if s.Forge == nil || s.state.Closed != "" {
		return nil
	}
	var targets []Feedback
	for _, r := range s.state.Feedback {
		if r.Withdrawn == "" {
			targets = append(targets, r.Feedback)
		}
	}
	for _, q := range s.state.Questions {
		targets = append(targets, q.Feedback)
	}
	targets = append(targets, s.state.controls...)
	for _, f := range targets {
		if f.Target.Kind == "" || f.Target.ID == 0 {
			continue
		}
		err := s.act(ctx, reactKey(f.Seq), func() (Act, bool, error) { return Act{}, false, nil }, func() (Act, error) {
			err := s.Forge.React(ctx, s.repo(), forge.Target(f.Target.Kind), f.Target.ID, "eyes")
			crash.Point("reacted")
			if errors.Is(err, forge.ErrInvalid) || errors.Is(err, forge.ErrForbidden) || s.deleted(ctx, err) {
				return Act{Note: err.Error()}, nil
			}
			return Act{}, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// deleted reports whether an error says that a single thing is gone while the
// repository is still there.
func (s *step) deleted(ctx context.Context, err error) bool {
	if !errors.Is(err, forge.ErrNotFound) && !errors.Is(err, forge.ErrGone) {
		return false
	}
	_, err = s.Forge.RepoInfo(ctx, s.repo())
	return err == nil
}

// answer writes the answer to a question as a comment of its own.
func (s *step) answer(ctx context.Context, q Question) error {
	body := ""
	v, err := s.view(ctx)
	if err != nil {
		return err
	}
	switch q.Command {
	case "status":
		body = checkrun.Status(v)
	case "why":
		body = checkrun.Why(v)
	default:
		body = checkrun.Help(s.app.Slug, q.Word)
	}
	mark := fmt.Sprintf("<!-- pawl:answer %s %d -->", s.thread, q.Seq)
	number := q.Number
	if number == 0 {
		number = s.thread.Number
	}
	return s.act(ctx, answerKey(q.Seq), func() (Act, bool, error) {
		c, ok, err := s.Forge.FindComment(ctx, s.repo(), number, mark, s.app.BotID)
		return Act{ID: c.ID, URL: c.HTMLURL}, ok, err
	}, func() (Act, error) {
		c, err := s.Forge.CreateComment(ctx, s.repo(), number, body, mark)
		crash.Point("answer_written")
		if errors.Is(err, forge.ErrForbidden) {
			// A locked thread takes no comments.
			return Act{Note: err.Error()}, nil
		}
		return Act{ID: c.ID, URL: c.HTMLURL}, err
	})
}

// hash names a rendering, so that an unchanged one is not sent again.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}
