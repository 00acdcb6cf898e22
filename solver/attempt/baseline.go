package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// VerifyBase sees that there is a layer, and runs the verify commands on the commit that the
// thread's branch began from, which is what the work is compared with; Ground.Before is what
// they came to. That is kept for each commit, commands and layer, but not where they cannot
// work: somebody may have mended that when the next attempt is asked for. Where somebody asks
// to stop meanwhile there is nothing, and no error. What only answers is not compared. Refused says why nothing can run.
func (a *Attempt) VerifyBase(ctx context.Context) (refused *thread.Decided, err error) {
	c, g := &checkout{Attempt: a}, a.Ground
	if g.From != "" {
		return nil, nil
	}
	if g.From, err = c.base(ctx); err != nil {
		return nil, err
	}
	if refused, err = c.image(ctx); refused == nil && err == nil {
		g.Before, refused, err = c.lay(ctx)
	}
	if err == nil && refused == nil && len(g.Before) == 0 && len(g.Effective.Verify) > 0 && a.Decision.Purpose == policy.ToChange {
		g.Before, err = c.overBase(ctx)
	}
	if err != nil || refused != nil {
		g.From = "" // it is tried again
	}
	if stopped(err) {
		return nil, nil
	}
	return refused, err
}

// based does so where an attempt runs already: one that was handed over comes without.
func (c *checkout) based(ctx context.Context) error {
	refused, err := c.VerifyBase(ctx)
	if err == nil && refused != nil {
		err = errors.New(refused.Reasons.String())
	}
	return err
}

// overBase is what the verify commands come to on the base.
func (c *checkout) overBase(ctx context.Context) (all []policy.Verified, err error) {
	at, key := c.Ground.From, c.Ground.Layer.Key
	if data, err := os.ReadFile(c.keptBase(at, key)); err == nil && json.Unmarshal(data, &all) == nil {
		return all, nil
	}
	if err := c.Room(); err != nil {
		return nil, err
	}
	t, err := c.trial(ctx, at, true)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.verifyBase(ctx, at, key)
}

// keptBase is the file that holds what the verify commands came to on a commit over a layer.
func (c *checkout) keptBase(at, layer string) string {
	e := c.Ground.Effective
	return filepath.Join(c.verifyDir(c.Thread), "base-"+thread.Hash(append([]string{at, layer, c.Ground.Image, strings.Join(e.Reports, "\n")}, e.Verify...)...)+".json")
}

// verifyBase runs the verify commands on a base, up to the first that cannot work, and
// keeps what they came to.
func (t *trial) verifyBase(ctx context.Context, at, layer string) (all []policy.Verified, err error) {
	ctx, end := t.Span(ctx, "verify base")
	defer func() { end(err) }()
	for _, command := range t.Ground.Effective.Verify {
		v, err := t.run(ctx, command)
		if err != nil {
			return nil, err
		}
		t.Log.Info().Str("command", oneLine(command)).Str("commit", at).Int("exit", v.Exit).Int("failing", len(v.Failing)).Str("unable", v.Unable()).Msg("the base was verified")
		v.At = policy.AtBase
		if all = append(all, v); v.Unable() != "" {
			return all, nil
		}
	}
	data, err := json.Marshal(all)
	kept := t.keptBase(at, layer)
	// Without these it is verified again.
	if err := errors.Join(err, os.WriteFile(kept+".part", data, 0o600), os.Rename(kept+".part", kept)); err != nil {
		t.Log.Warn().Err(err).Msg("what the base's verification came to was not kept")
	}
	return all, nil
}

// base is the commit that the thread's branch began from: where it left the
// branch that it is to be merged into, which after a merge is that branch's commit. Without a history in
// common it is what was there before Pawl.
func (c *checkout) base(ctx context.Context) (string, error) {
	if c.Ground.Merging != nil {
		return c.Ground.Into, nil
	}
	if c.Ground.Into != "" {
		if base, err := c.Ground.cache.MergeBase(ctx, c.Ground.Into, c.Ground.Start); base != "" || err != nil {
			return base, err
		}
	}
	for _, a := range c.State.Attempts {
		if a.Receipt.Base != "" {
			return a.Receipt.Base, nil
		}
	}
	return c.Ground.Start, nil
}
