package handlers

import (
	"context"
	"errors"
	"fmt"

	"github.com/pawlbot/pawl/internal/forge"
)

// closedSince asks GitHub whether the thread is closed, and was not before a remark
// was made on it: somebody who asks for work on a closed thread wants it. A thread
// that GitHub does not show is left to the step, which says what is wrong with it.
func (h *Handlers) closedSince(ctx context.Context, hp happening) (why string, err error) {
	if hp.madeAt.IsZero() {
		return "", nil
	}
	i, err := h.Forge.Issue(ctx, hp.repo, hp.number)
	var moved *forge.Moved
	switch {
	case errors.Is(err, forge.ErrNotFound), errors.Is(err, forge.ErrGone), errors.Is(err, forge.ErrForbidden), errors.Is(err, forge.ErrUninstalled), errors.As(err, &moved):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("whether %s#%d is open: %w", hp.repo.FullName(), hp.number, err)
	case i.State == "closed" && !i.Closed.Before(hp.madeAt): // of the same second: who closes with a comment makes that first
		return "the thread was closed", nil
	}
	return "", nil
}
