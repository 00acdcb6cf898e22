package solver

import (
	"context"
	"errors"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/panics"
)

// unread stops a thread whose log holds an event that cannot be read, and reports that on the thread once. It appends
// nothing: Pawl could not fold the new event either.
func (p *publisher) unread(ctx context.Context, damage error) error {
	p.log.Error().Err(damage).Str("stack", panics.Stack(damage)).Msg("the thread's log is damaged; Pawl does nothing on the thread until it is restored")
	err := p.showDamage(ctx)
	var moved *forge.Moved
	lasts := isAny(err, forge.ErrForbidden, forge.ErrInvalid, forge.ErrNotFound, forge.ErrGone, forge.ErrUninstalled)
	if lasts || errors.As(err, &moved) {
		p.log.Warn().Err(err).Msg("the damage cannot be shown on the thread")
		return nil
	}
	return err
}

func (p *publisher) showDamage(ctx context.Context) error {
	if err := p.reach(ctx); err != nil || !p.shows() {
		return err
	}
	text, mark := checkrun.Damaged(p.thread.String(), p.state.Seq+1)
	_, exists, err := p.Forge.Issues.FindComment(ctx, p.repo(), p.thread.Number, mark)
	if err == nil && !exists {
		_, err = p.Forge.Issues.CreateComment(ctx, p.repo(), p.thread.Number, text, mark)
	}
	return err
}
