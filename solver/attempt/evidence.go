package attempt

import (
	"context"
	"slices"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// maxEvidence bounds what is kept of the output of a failure that is no failure of the attempt, in bytes.
const maxEvidence = 8 << 10

// evidence asks what the tests say of a commit apart from what was done to them, in files that no agent wrote to: those
// of the base's tests over its code, and of its tests over the base's code. now is what verification came to, which passed.
func (c *checkout) evidence(ctx context.Context, commit string, now []policy.Verified) (*policy.TestEvidence, error) {
	ws, g := c.ws, c.Ground
	if ws == nil { // of an attempt that another server ran
		t, err := c.trial(ctx, commit, false)
		if err != nil {
			return nil, err
		}
		defer t.close()
		ws = t.ws
	}
	read := func(at, file string) []byte {
		text, err := g.cache.ReadFile(ctx, at, file)
		if err != nil {
			return nil // there is none, or nothing that can be read
		}
		return text
	}
	side := policy.NewTestSide(g.Effective.Verify, func(file string) string { return string(read(g.From, file)) }).Reported(g.Before, now)
	var change policy.TestChange
	var err error
	if change.Deleted, change.Edited, change.Added, err = ws.Paths(ctx, g.From, commit); err != nil {
		return nil, err
	}
	theirs, ours := map[string][]byte{}, map[string][]byte{} // manifests of the change with the base's scripts, and the reverse
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
	e.Without, err = c.mixed(ctx, ws, commit, policy.AtBase, func(file string) bool { return !side.Has(file) }, ours)
	return e, err
}

// mixed verifies a commit in which some files are the base's again, and others have these contents.
func (c *checkout) mixed(ctx context.Context, ws *git.Workspace, commit, at string, back func(file string) bool, contents map[string][]byte) ([]policy.Verified, error) {
	tree, _, err := ws.Without(ctx, commit, c.Ground.From, back)
	if err == nil {
		tree, err = ws.With(ctx, tree, contents)
	}
	if err == nil {
		commit, err = ws.Commit(ctx, c.commit(text.Subject("For comparison", maxSubject), "", tree, c.Ground.From))
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
