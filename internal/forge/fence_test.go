package forge

import (
	"context"
	"errors"
	"testing"
)

func TestFencedRequestIsNotSent(t *testing.T) {
	h, c := start(t)
	lost := errors.New("another node writes now")
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	open := true
	fenced := c.Fenced(func(context.Context) error {
		if open {
			return nil
		}
		end(lost)
		return lost
	})
	write := func() error {
		_, err := fenced.Issues.CreateComment(ctx, h.repo, 1, "hello", "<!-- mark -->")
		return err
	}
	if err := write(); err != nil {
		t.Fatalf("with the fence open: %v", err)
	}
	sent := len(h.calls(commentRoute))
	open = false
	if err := write(); err == nil {
		t.Error("the comment was written")
	}
	if again := len(h.calls(commentRoute)); sent != 1 || again != 1 {
		t.Errorf("%d requests with the fence open and %d in all, want one", sent, again)
	}
}

func TestFenceAppliesOnlyToItsClientsWrites(t *testing.T) {
	h, c := start(t)
	run := h.checkRun()
	h.token(c)
	closed := c.Fenced(func(context.Context) error { return errors.New("closed") })
	if _, err := closed.Issues.Get(t.Context(), h.repo, 1); err != nil {
		t.Errorf("a read: %v", err)
	}
	if err := closed.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err == nil {
		t.Error("a reaction was sent")
	}
	if _, err := closed.Checks.Update(t.Context(), h.repo, run.ID, CheckRun{Name: "pawl", HeadSHA: run.HeadSHA}); err == nil {
		t.Error("a check run was changed")
	}
	if err := c.Issues.React(t.Context(), h.repo, "issue", 1, Eyes); err != nil {
		t.Errorf("a reaction without a fence: %v", err)
	}
	if n := len(h.calls(reactRoute)) + len(h.calls(updateRoute)); n != 1 {
		t.Errorf("%d writes were sent, want one", n)
	}
}
