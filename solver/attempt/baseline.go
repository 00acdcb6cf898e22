package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// VerifyBase builds the layer if needed and runs the verify commands on the branch's base. Ground.Before receives the
// results, which are cached by commit, layer, image and commands. Results of a command that cannot work are not cached.
// After a stop it returns neither a decision nor an error. refused says why the attempt cannot run.
func (a *Attempt) VerifyBase(ctx context.Context) (refused *thread.Decided, err error) {
	c, g := &checkout{Attempt: a}, a.Ground
	if g.From != "" {
		return nil, nil
	}
	g.From, err = c.base(ctx)
	if err != nil {
		return nil, err
	}
	g.Before = nil
	refused, err = c.prepareBase(ctx)
	if err != nil || refused != nil {
		g.From = "" // retry later
	}
	if stopped(err) {
		return nil, nil
	}
	return refused, err
}

// prepareBase prepares the image and the layer, and verifies the base if the attempt changes files.
func (c *checkout) prepareBase(ctx context.Context) (refused *thread.Decided, err error) {
	refused, err = c.image(ctx)
	if refused == nil && err == nil {
		refused, err = c.lay(ctx)
	}
	if refused != nil || err != nil {
		return refused, err
	}
	g := c.Ground
	known := len(g.Before) > 0 // verified while the layer was built
	if known || len(g.Effective.Verify) == 0 || c.Decision.Purpose != policy.ToChange {
		return nil, nil
	}
	g.Before, err = c.overBase(ctx)
	return nil, err
}

// based prepares the base unless this process already did, for example after a handover.
func (c *checkout) based(ctx context.Context) error {
	refused, err := c.VerifyBase(ctx)
	if err == nil && refused != nil {
		err = errors.New(refused.Reasons.String())
	}
	return err
}

func (c *checkout) overBase(ctx context.Context) (all []policy.Verified, err error) {
	at, key := c.Ground.From, c.Ground.Layer.Key
	if data, err := os.ReadFile(c.keptBase(at, key)); err == nil && json.Unmarshal(data, &all) == nil {
		return all, nil
	}
	if err := c.Env.Room(); err != nil {
		return nil, err
	}
	t, err := c.trial(ctx, at, key)
	if err != nil {
		return nil, err
	}
	defer t.close()
	return t.verifyBase(ctx, at, key)
}

func (c *checkout) keptBase(at, layer string) string {
	e := c.Ground.Effective
	return filepath.Join(c.Env.verifyDir(c.Thread), "base-"+thread.Hash(append([]string{at, layer, c.Ground.Image, strings.Join(e.Reports, "\n")}, e.Verify...)...)+".json")
}

// verifyBase runs the verify commands and caches the results. It stops without caching at a command that cannot work.
func (t *trial) verifyBase(ctx context.Context, at, layer string) (all []policy.Verified, err error) {
	defer t.c.Env.prepare("")
	for _, command := range t.c.Ground.Effective.Verify {
		t.c.Env.prepare("verifying the base: " + command)
		v, err := t.run(ctx, command)
		if err != nil {
			return nil, err
		}
		t.c.Log.Info().Str("command", oneLine(command)).Str("commit", at).Int("exit", v.Exit).Int("failing", len(v.Failing)).Str("unable", v.Unable()).Msg("the base was verified")
		v.At = policy.AtBase
		if all = append(all, v); v.Unable() != "" {
			return all, nil
		}
	}
	data, err := json.Marshal(all)
	kept := t.c.keptBase(at, layer)
	// A failed cache write only costs another verification.
	if err := errors.Join(err, os.WriteFile(kept+".part", data, 0o600), os.Rename(kept+".part", kept)); err != nil {
		t.c.Log.Warn().Err(err).Msg("the result of the base's verification was not stored")
	}
	return all, nil
}

// base returns the commit from which the thread's branch left its base branch, or the base's tip during a merge. Without
// common history, base returns the first recorded base of an attempt, or else this attempt's start.
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

// maxEvidence limits the stored output of failures that the attempt did not cause, in bytes.
const maxEvidence = 8 << 10

// evidence runs the base's tests on the change and the change's tests on the base, in fresh files.
func (c *checkout) evidence(ctx context.Context, commit string, now []policy.Verified) (*policy.TestEvidence, error) {
	ws, g := c.ws, c.Ground
	if ws == nil { // the attempt ran on another server
		t, err := c.trial(ctx, commit, "")
		if err != nil {
			return nil, err
		}
		defer t.close()
		ws = t.ws
	}
	read := func(at, file string) []byte {
		text, err := g.cache.ReadFile(ctx, at, file)
		if err != nil {
			return nil
		}
		return text
	}
	side := policy.NewTestSide(g.Effective.Verify, func(file string) string { return string(read(g.From, file)) }).Reported(g.Before, now)
	var change policy.TestChange
	var err error
	if change.Deleted, change.Edited, change.Added, err = ws.Paths(ctx, g.From, commit); err != nil {
		return nil, err
	}
	theirs, ours := map[string][]byte{}, map[string][]byte{} // the change's manifests with the base's scripts, and vice versa
	for _, file := range slices.Concat(change.Deleted, change.Edited, change.Added) {
		if !side.Manifest(file) {
			continue
		}
		before, after := read(g.From, file), read(commit, file)
		if mixed := policy.WithScripts(file, after, before); mixed != nil {
			change.Manifests = append(change.Manifests, file)
			theirs[file], ours[file] = mixed, policy.WithScripts(file, before, after)
		}
	}
	e := policy.NewTestEvidence(side, change, g.Before, now)
	if len(e.Changed) == 0 || e.Skipped != "" {
		return e, nil
	}
	if e.AsTheyWere, err = c.mixed(ctx, ws, commit, policy.AtChange, side.Has, theirs); err != nil {
		return e, err
	}
	if e.Count(g.Before, e.AsTheyWere); !e.Asks {
		return e, nil
	}
	without, err := c.mixed(ctx, ws, commit, policy.AtBase, func(file string) bool { return !side.Has(file) }, ours)
	e.WithoutChange(without, now)
	return e, err
}

// mixed verifies a commit after replacing some files.
func (c *checkout) mixed(ctx context.Context, ws *git.Workspace, commit, at string, back func(file string) bool, contents map[string][]byte) ([]policy.Verified, error) {
	tree, _, err := ws.Without(ctx, commit, c.Ground.From, back)
	if err == nil {
		tree, err = ws.With(ctx, tree, contents)
	}
	if err == nil {
		commit, err = ws.Commit(ctx, c.commit(render.Subject("For comparison", maxSubject), "", tree, c.Ground.From))
	}
	if err != nil {
		return nil, err
	}
	all, err := c.verify(ctx, commit, at)
	for i := range all {
		v := &all[i]
		if v.Ran = nil; v.Passed {
			v.Output = ""
		}
		v.Output = tail(v.Output, maxEvidence)
		c.Log.Info().Str("command", oneLine(v.Command)).Str("code_of", at).Bool("passed", v.Passed).Msg("verified for comparison")
	}
	return all, err
}
