package attempt

import (
	"context"
	"fmt"
	"slices"

	"github.com/pawlbot/pawl/internal/text"
)

// withoutLeaks is tree without the changes of files to which the attempt added what looks like a secret. The receipt names the files and lines, never the values.
func withoutLeaks(ctx context.Context, c *checkout, tree string) (string, error) {
	leaks := text.NewLeaks(slices.Concat(c.backend().Env, c.Config.Policy.Learning.JudgeEnv), c.Lookup)
	found := map[string]string{}
	see := func(path string, n int, line string) {
		leak, is := leaks.Find(path, line)
		if !is || found[path] != "" || slices.Contains(c.Ground.Effective.AllowSecrets, leak.Fingerprint) {
			return
		}
		found[path] = fmt.Sprintf("line %d looks like %s; allow_secrets in .github/pawl.yml may list %s", n, leak.Kind, leak.Fingerprint)
	}
	if err := c.ws.Added(ctx, c.ws.StartTree, tree, see); err != nil {
		return "", err
	}
	if len(found) == 0 {
		return tree, nil
	}
	tree, left, err := c.ws.Without(ctx, tree, c.ws.StartTree, func(path string) bool { return found[path] != "" })
	for _, path := range left {
		c.Receipt.LeftOut = append(c.Receipt.LeftOut, path+" ("+found[path]+")")
	}
	return tree, err
}
