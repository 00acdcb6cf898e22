package attempt

import (
	"context"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/text"
	"github.com/pawlbot/pawl/policy"
)

// given are the variables whose values an attempt, its setup or its judge got.
func (a *Attempt) given() []string {
	return slices.Concat(a.backend().Env, a.Config.Policy.Learning.JudgeEnv, a.Config.Setup.Names(a.Thread.Repo()))
}

// leaks puts into the receipt what in a tree looks like a secret and is neither in what the attempt started from
// nor, where the base was merged, in the base; paths are read, too. The receipt names places, never values.
func leaks(ctx context.Context, c *checkout, tree string) error {
	type place struct {
		path, line string
	}
	secrets, r, sides := text.NewLeaks(c.given(), c.Lookup), &c.Receipt, []string{c.Ground.Start}
	if c.Ground.Merging != nil { // the base first: from there on only the work differs
		sides = []string{c.Ground.Into, c.Ground.Start}
	}
	r.Leaks = nil
	seen := map[place]int{}
	for i, side := range sides {
		last := i == len(sides)-1
		if i > 0 && len(seen) == 0 {
			break
		}
		var paths []string // those of what was found at the side before; none names all
		for p := range seen {
			paths = append(paths, p.path)
		}
		if len(paths) > maxPaths {
			paths = nil
		}
		see := func(path string, n int, line string) {
			found, is := secrets.Find(path, line)
			if !is {
				return
			}
			if seen[place{path, line}]++; last && seen[place{path, line}] >= len(sides) {
				r.Leaks = append(r.Leaks, policy.Leak{Path: text.When(n > 0, path), Line: n, Kind: found.Kind, Fingerprint: found.Fingerprint})
			}
		}
		_, _, added, err := c.ws.Paths(ctx, side, tree)
		if err != nil {
			return err
		}
		for _, path := range added {
			see(path, 0, path)
		}
		begun, first, key := "", 0, "" // a private key, whose next line tells it from others
		end := func() {
			if key != "" {
				see(begun, first, key)
			}
			key = ""
		}
		err = c.ws.Added(ctx, side, tree, func(path string, n int, line string) {
			if key != "" && path == begun && n == first+1 {
				key += "\n" + line
			}
			end()
			if strings.Contains(line, "-----BEGIN ") {
				begun, first, key = path, n, line
				return
			}
			see(path, n, line)
		}, paths...)
		if err != nil {
			return err
		}
		end()
	}
	r.Leaks = slices.DeleteFunc(r.Leaks, func(l policy.Leak) bool {
		return slices.ContainsFunc(c.Ground.Effective.AllowSecrets, func(allowed string) bool { return strings.EqualFold(allowed, l.Fingerprint) })
	})
	return nil
}
