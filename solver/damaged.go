package solver

import (
	"context"
	"errors"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// unread stops a thread whose log holds an event that cannot be read, and says so on the thread once. Other errors pass
// when the database answers again. Nothing is logged: no state follows from what stands behind such an event.
func (p *publisher) unread(ctx context.Context, damage error) error {
	if !errors.Is(damage, thread.ErrDamaged) {
		return damage
	}
	p.log.Error().Err(damage).Msg("the thread's log is damaged; nothing is done on the thread until it is mended")
	if err := p.reach(ctx); err != nil {
		return err
	}
	if !p.shows() {
		return nil
	}
	text, mark := checkrun.Damaged(p.thread.String(), p.state.Seq+1)
	_, told, err := p.Forge.Issues.FindComment(ctx, p.repo(), p.thread.Number, mark)
	if err == nil && !told {
		_, err = p.Forge.Issues.CreateComment(ctx, p.repo(), p.thread.Number, text, mark)
	}
	if isAny(err, forge.ErrForbidden, forge.ErrInvalid, forge.ErrNotFound, forge.ErrGone) {
		p.log.Warn().Err(err).Msg("the damage cannot be shown on the thread")
		return nil
	}
	return err
}
