package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// VerifyBase runs the verify commands on the commit that the thread's branch began from,
// which is what the work is compared with, and puts the results into Ground.Before. They
// are kept for each commit and commands, but not those of commands that cannot work:
// somebody may have mended that when the next attempt is asked for. Where somebody asks
// to stop meanwhile there are none, and no error.
func (a *Attempt) VerifyBase(ctx context.Context) (err error) {
	c, g := &checkout{Attempt: a}, a.Ground
	if len(g.Effective.Verify) == 0 || len(g.Before) > 0 {
		return nil
	}
	if g.From, err = c.base(ctx); err != nil {
		return err
	}
	kept := filepath.Join(c.verifyDir(c.Thread), "base-"+thread.Hash(append([]string{g.From, strings.Join(g.Effective.Reports, "\n")}, g.Effective.Verify...)...)+".json")
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &g.Before) == nil {
		return nil
	}
	if err := a.Room(); err != nil {
		return err
	}
	ctx, end := a.Span(ctx, "verify base")
	defer func() { end(err) }()
	t, err := c.trial(ctx, g.From, true)
	if err != nil {
		return err
	}
	defer t.close()
	var all []policy.Verified
	for _, command := range g.Effective.Verify {
		v, err := t.run(ctx, command)
		if errors.Is(err, errStopped) || errors.Is(err, errClosed) {
			return nil
		}
		if err != nil {
			return err
		}
		c.Log.Info().Str("command", oneLine(command)).Str("commit", g.From).Int("exit", v.Exit).Int("failing", len(v.Failing)).Str("unable", v.Unable()).Msg("the base was verified")
		if all = append(all, v); v.Unable() != "" {
			break
		}
	}
	g.Before = all
	if policy.Unable(all) != "" {
		return nil
	}
	data, err := json.Marshal(all)
	// Without these it is verified again, or takes longer.
	if err := errors.Join(err, os.WriteFile(kept+".part", data, 0o600), os.Rename(kept+".part", kept), t.keepHome(ctx)); err != nil {
		c.Log.Warn().Err(err).Msg("what the base's verification left was not kept")
	}
	return nil
}

// maxKeptHome bounds the HOME that is kept for a repository, in bytes: it is copied for
// each verification. The build cache of a Go module of two files has about 100 MB.
const maxKeptHome = 2 << 30

// keepHome keeps the HOME of the base's verification for others of the repository, where
// the base is the default branch's: no agent wrote what ran in it.
func (t *trial) keepHome(ctx context.Context) error {
	own, err := t.Ground.cache.IsAncestor(ctx, t.Ground.From, t.Ground.settings)
	if err != nil || !own {
		return err
	}
	size := int64(0)
	err = filepath.WalkDir(t.home, func(_ string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			var info fs.FileInfo
			if info, err = d.Info(); err == nil {
				size += info.Size()
			}
		}
		return err
	})
	if _, full, _ := t.free(); err != nil || full || size > maxKeptHome {
		return err
	}
	t.homes.Lock()
	defer t.homes.Unlock()
	kept := t.KeptHome(t.Thread)
	if err := git.Remove(kept); err != nil {
		return err
	}
	return os.Rename(t.home, kept)
}

// base is the commit that the thread's branch began from: where it left the
// branch that it is to be merged into. Without a history in common it is what was
// there before Pawl.
func (c *checkout) base(ctx context.Context) (string, error) {
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
