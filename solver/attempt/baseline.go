package attempt

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// maxBaselines is how many results on base trees are kept for a repository.
const maxBaselines = 200

// baseline is what a command came to on the tree that the thread's branch began
// from. The zero value is one of which nothing is known.
type baseline struct {
	Exit    int              `json:"exit"`
	Signal  string           `json:"signal,omitempty"`
	Passed  int              `json:"passed"`
	Failing []policy.Failing `json:"failing,omitempty"`
}

// forgive takes the tests out that failed already before Pawl began, and lets
// the command pass if nothing else failed. The base is measured only here, so a
// clean pass costs nothing. What the task is about is not forgiven.
func (c *checkout) forgive(ctx context.Context, v *policy.Verified) error {
	before, err := c.baseline(ctx, v.Command)
	if cause := context.Cause(ctx); err != nil && (cause != nil || errors.Is(err, errStopped) || errors.Is(err, errClosed)) {
		return err
	}
	if err != nil {
		// Nothing is known, so everything counts; the work is not lost for it.
		c.Log.Warn().Err(err).Str("command", oneLine(v.Command)).Msg("the base was not verified")
		return nil
	}
	before.excuse(v, c.State.About(c.Seen))
	return nil
}

// asksForTests matches a task that is about failing tests as such.
var asksForTests = regexp.MustCompile(`(?i)\b(?:fail\w*|broken|red|fix\w*|repair\w*)\b.{0,40}\b(?:tests?|ci)\b|\b(?:tests?|ci|build|checks?)\b.{0,40}\b(?:fail\w*|broken|red)\b`)

// excuse moves what failed on the base, too, from the failing tests to the known
// ones. The command passes only if it ended in the same way there and nothing
// else is wrong: no other failure, no test less that passes.
func (b baseline) excuse(v *policy.Verified, task string) {
	if asksForTests.MatchString(task) {
		return
	}
	named := len(v.Failing)
	var fresh []policy.Failing
	for _, f := range v.Failing {
		if b.had(f) && !strings.Contains(task, lastPart(f.Name)) {
			v.Known = append(v.Known, f.Name)
		} else {
			fresh = append(fresh, f)
		}
	}
	v.Failing = fresh
	v.Passed = len(fresh) == 0 && len(v.Known) > 0 && v.FailedTests <= named &&
		v.Exit == b.Exit && v.Signal == b.Signal && v.PassedTests >= b.Passed
}

// had reports whether the base had a failure. One that is no test, such as a
// package that does not build, must be the same in its words.
func (b baseline) had(f policy.Failing) bool {
	return slices.ContainsFunc(b.Failing, func(g policy.Failing) bool {
		return f.Name == g.Name && (f.Text == g.Text || !strings.HasSuffix(f.Name, "]"))
	})
}

// lastPart is the part of a test's name that people use: that after the last
// space, slash, colon or angle.
func lastPart(name string) string {
	i := strings.LastIndexAny(strings.TrimRight(name, ")]"), " /:›.")
	return name[i+1:]
}

// baseline is what a command says of the tree that the thread's branch began
// from. It is measured once a tree.
func (c *checkout) baseline(ctx context.Context, command string) (baseline, error) {
	base, err := c.base(ctx)
	if err != nil {
		return baseline{}, err
	}
	dir := filepath.Join(c.threadDir(c.Thread), baseDir)
	if err := git.Remove(dir); err != nil {
		return baseline{}, err
	}
	ws, err := c.Ground.cache.Checkout(ctx, git.CheckoutSpec{Commit: base, Dir: dir, Branch: "base"})
	if err != nil {
		return baseline{}, err
	}
	defer func() {
		if err := ws.Close(); err != nil {
			c.Log.Warn().Err(err).Msg("checkout of the base left behind")
		}
	}()
	kept := filepath.Join(c.cacheDir(c.Thread)+".verified", thread.Hash(ws.StartTree, command)+".json")
	var known baseline
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &known) == nil {
		return known, nil
	}
	v, whole, err := c.verifyOne(ctx, command, ws)
	if err != nil {
		return baseline{}, err
	}
	c.Log.Info().Str("command", oneLine(command)).Str("tree", ws.StartTree).Int("failing", len(v.Failing)).Msg("the base was verified")
	if !v.TimedOut && whole {
		known = baseline{Exit: v.Exit, Signal: v.Signal, Passed: v.PassedTests, Failing: v.Failing}
	}
	if err := keepBaseline(kept, known); err != nil {
		// It is measured again the next time.
		c.Log.Warn().Err(err).Msg("the result on the base was not kept")
	}
	return known, nil
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

func keepBaseline(path string, b baseline) error {
	data, err := json.Marshal(b)
	if err != nil {
		return err
	}
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	written := func(e fs.DirEntry) (at time.Time) {
		if info, err := e.Info(); err == nil {
			at = info.ModTime()
		}
		return at
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return written(a).Compare(written(b)) })
	for _, e := range entries[:max(0, len(entries)-maxBaselines+1)] {
		if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
