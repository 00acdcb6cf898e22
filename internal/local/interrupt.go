package local

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// Interruptible returns the context for a solver's work. When given ends, the solver saves the attempt's work and
// stops. The caller must call end.
func Interruptible(given context.Context, s *solver.Solver) (ctx context.Context, end func()) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(given))
	s.Env.Stopping = make(chan struct{})
	unwatch := context.AfterFunc(given, func() {
		close(s.Env.Stopping)
		cancel(context.Cause(given))
	})
	return ctx, func() {
		unwatch()
		cancel(nil)
	}
}

// Keep moves the folder's branch to the work of an interrupted attempt, and reports whether there is any.
func Keep(ctx context.Context, s *solver.Solver, t thread.ID, f solver.Folder) (bool, error) {
	_, state, err := thread.Load(ctx, s.Env.Store, t)
	if err != nil {
		return false, err
	}
	if !state.Unfinished.Changed() {
		return false, nil
	}
	branch, side := "refs/heads/"+f.Branch, thread.UnfinishedRef(t)
	return true, errors.Join(
		refs(ctx, f.Dir, branch, state.Unfinished.Commit),
		refs(ctx, f.Dir, "-d", side),
	)
}

func refs(ctx context.Context, dir string, args ...string) error {
	args = append([]string{"-C", dir, "update-ref"}, args...)
	out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
	}
	return nil
}

// Dirty counts files that differ from the last commit, new ones included.
func Dirty(ctx context.Context, dir string) (int, error) {
	args := []string{"-c", "core.fsmonitor=false", "-C", dir, "status", "--porcelain", "--no-renames", "--untracked-files=all", "-z"}
	out, err := exec.CommandContext(ctx, "git", args...).Output()
	if err != nil {
		return 0, fmt.Errorf("look for uncommitted changes in %s: %w", dir, err)
	}
	return strings.Count(string(out), "\x00"), nil
}
