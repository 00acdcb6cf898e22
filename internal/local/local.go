// Package local runs the solve loop in a folder, without a server and without GitHub.
//
//	request the work, wait for its end              local.go
//	progress display                                feed.go
//	save the work of an interrupted run             interrupt.go
//	folders of databases and transcripts            runs.go
//	output of pawl run --json                       result.go
//	an agent without a configuration file           standalone.go
package local

import (
	"context"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// Thread returns the thread of a folder's work.
func Thread(dir string) thread.ID {
	return thread.ID{Owner: "local", Name: filepath.Base(dir), Number: 1}
}

// Ask logs a user's command to do a task.
func Ask(ctx context.Context, s *solver.Solver, t thread.ID, task string) error {
	now := s.Env.Now()
	_, err := s.Env.Store.Append(ctx, t, false, thread.NewEvent{
		Kind: thread.KindFeedback,
		At:   now,
		Data: thread.Feedback{
			Source:  policy.FromComment,
			By:      feedback.Actor{Login: "you"},
			Reason:  "pawl run",
			Command: "solve",
			Text:    task,
			MadeAt:  now,
		},
	})
	return err
}

// Work runs the thread until it is finished or a cooldown begins. It calls onWait before each wait.
func Work(ctx context.Context, s *solver.Solver, t thread.ID, onWait func(checkrun.View)) error {
	for {
		if err := s.Step(ctx, t); err != nil {
			return err
		}
		v, err := s.View(ctx, t)
		if err != nil {
			return err
		}
		if v.State != checkrun.Waiting || v.Rule == policy.RuleCooldown {
			// A cooldown takes hours, too long to wait at a terminal.
			return nil
		}
		onWait(v)
		if err := wait.For(ctx, max(time.Second, time.Until(v.Until))); err != nil {
			return err
		}
	}
}
