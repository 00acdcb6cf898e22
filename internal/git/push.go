package git

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Push moves a branch of the remote from expectOld to the commit sha of the
// cache. An empty expectOld means that the branch does not exist yet.
//
// It only ever moves a branch forward, and only from where the caller knows it
// to be; otherwise the answer is ErrRejected and nothing changed. A branch that
// is already at sha is fine, so a push may be repeated after a crash. Other
// answers of a server are ErrProtected, ErrAuth, ErrNotFound and
// ErrUnavailable. Keeping away from the default branch is the caller's part.
func (c *Cache) Push(ctx context.Context, r Remote, sha, branch, expectOld string) error {
	if err := checkIDs(sha); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	ref, err := fullRef(branch)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if !strings.HasPrefix(ref, "refs/heads/") {
		return fmt.Errorf("push to %s: %w: only branches are pushed", ref, ErrInvalid)
	}
	if expectOld != "" {
		forward, err := c.IsAncestor(ctx, expectOld, sha)
		if err != nil {
			return fmt.Errorf("push to %s: %w", branch, err)
		}
		if !forward {
			return fmt.Errorf("push %s to %s: %w: it does not contain %s", sha, branch, ErrRejected, expectOld)
		}
	}
	// The lease makes the server compare the old value in the same step in which
	// it sets the new one. It would also permit a rewrite of what it names, which
	// the check above excludes.
	out, err := c.run(ctx, command{
		args: []string{"push", "--porcelain", "--no-verify", "--force-with-lease=" + ref + ":" + expectOld,
			"--", r.URL, sha + ":" + ref},
		remote: &r,
	})
	if err == nil {
		return nil
	}
	return refused(err, string(out), branch, &r)
}

// PushSide sets a reference below refs/pawl/, which no branch and no pull request
// shows, whatever it was before. An empty commit removes it.
func (c *Cache) PushSide(ctx context.Context, r Remote, sha, ref string) error {
	full, err := fullRef(ref)
	if err == nil && sha != "" {
		err = checkIDs(sha)
	}
	if err == nil && !strings.HasPrefix(full, "refs/pawl/") {
		err = ErrInvalid
	}
	if err != nil {
		return fmt.Errorf("push to %s: %w", ref, err)
	}
	out, err := c.run(ctx, command{args: []string{"push", "--porcelain", "--no-verify", "--force", "--", r.URL, sha + ":" + full}, remote: &r})
	if failed, ok := errors.AsType[*commandError](err); err == nil || ok && sha == "" && strings.Contains(failed.stderr, "remote ref does not exist") {
		return nil
	}
	return refused(err, string(out), ref, &r)
}

// refused finds out why a push failed. With --porcelain git prints a line
// "!\tfrom:to\t[rejected] (why)" for a reference that was not updated.
func refused(err error, out, branch string, r *Remote) error {
	for line := range strings.Lines(out) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "!\t")
		if !ok {
			continue
		}
		_, why, _ := strings.Cut(rest, "\t")
		why = redact(why, r)
		kind := rejection(why)
		if kind == nil {
			continue
		}
		detail := why
		if failed, ok := errors.AsType[*commandError](err); ok && kind == ErrProtected && failed.stderr != "" {
			detail += "; " + failed.stderr // the rules that were broken stand there
		}
		return fmt.Errorf("push to %s: %w: %s", branch, kind, detail)
	}
	return fmt.Errorf("push to %s: %w", branch, err)
}

// rejection is the kind of a refused reference. "[rejected]" is git's own
// decision, "[remote rejected]" the server's: it refuses because the branch
// moved in the same moment, because of a rule, or because it is in trouble.
func rejection(why string) error {
	if strings.HasPrefix(why, "[rejected]") {
		return ErrRejected
	}
	if !strings.HasPrefix(why, "[remote rejected]") {
		return nil
	}
	race := []string{"cannot lock ref", "failed to update ref", "reference already exists", "is at ", "stale info",
		"incorrect old value", "non-fast-forward", "fetch first", "failed to lock"}
	trouble := []string{"Internal Server Error", "unpacker error", "timeout", "timed out", "shallow update"}
	switch {
	case containsAny(why, race):
		return ErrRejected
	case containsAny(why, trouble):
		return ErrUnavailable
	}
	return ErrProtected
}
