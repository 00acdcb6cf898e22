package solver

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// baseDir holds the checkout of the base while a command is run on it.
const baseDir = "base"

// maxBaselines is how many results on base trees are kept for a repository.
const maxBaselines = 200

// forgive takes the tests out that failed already before Pawl began, and lets
// the command pass if no other failure is left. The base is measured only here,
// so a clean pass costs nothing.
func (s *step) forgive(ctx context.Context, a Started, p *prepared, v *Verified) error {
	before, err := s.baseline(ctx, a, p, v.Command)
	if err != nil {
		return err
	}
	now := policy.TestReport{}
	for _, f := range v.Failing {
		now.Failures = append(now.Failures, policy.Failure(f))
	}
	fresh, known := policy.NewFailures(now, before)
	told := len(v.Failing)
	v.Failing, v.Known = nil, nil
	for _, f := range fresh {
		v.Failing = append(v.Failing, Failing(f))
	}
	for _, f := range known {
		v.Known = append(v.Known, f.Name)
	}
	// A runner that counts more failures than it names hides some.
	v.Passed = len(fresh) == 0 && len(known) > 0 && v.FailedTests <= told
	return nil
}

// baseline is what a command says of the tree that the thread's branch began
// from. It is measured once a tree.
func (s *step) baseline(ctx context.Context, a Started, p *prepared, command string) (policy.TestReport, error) {
	base, err := s.base(ctx, p)
	if err != nil {
		return policy.TestReport{}, err
	}
	dir := filepath.Join(s.threadDir(s.thread), baseDir)
	if err := git.Remove(dir); err != nil {
		return policy.TestReport{}, err
	}
	ws, err := p.cache.Checkout(ctx, git.CheckoutSpec{Commit: base, Dir: dir, Branch: "base"})
	if err != nil {
		return policy.TestReport{}, err
	}
	defer func() {
		if err := ws.Close(); err != nil {
			s.log.Warn().Err(err).Msg("checkout of the base left behind")
		}
	}()
	kept := filepath.Join(s.cacheDir(s.thread)+".verified", hash(ws.StartTree, command)+".json")
	var report policy.TestReport
	if data, err := os.ReadFile(kept); err == nil && json.Unmarshal(data, &report) == nil {
		return report, nil
	}
	v, err := s.verifyOne(ctx, a, p, command, ws)
	if err != nil {
		return policy.TestReport{}, err
	}
	s.log.Info().Str("command", oneLine(command)).Str("tree", ws.StartTree).Int("failing", len(v.Failing)).Msg("the base was verified")
	for _, f := range v.Failing {
		report.Failures = append(report.Failures, policy.Failure(f))
	}
	if v.TimedOut {
		return policy.TestReport{}, nil
	}
	if err := keepBaseline(kept, report); err != nil {
		// It is measured again the next time.
		s.log.Warn().Err(err).Msg("the result on the base was not kept")
	}
	return report, nil
}

// base is the commit that the thread's branch began from: for an issue where it
// left the default branch, for a pull request what was there before Pawl.
func (s *step) base(ctx context.Context, p *prepared) (string, error) {
	if !s.state.Snapshot.Pull && p.settings != "" {
		if base, err := p.cache.MergeBase(ctx, p.settings, p.start); base != "" || err != nil {
			return base, err
		}
	}
	for _, a := range s.state.Attempts {
		if a.Receipt.Base != "" {
			return a.Receipt.Base, nil
		}
	}
	return p.start, nil
}

// keepBaseline writes a result and removes the oldest where there are too many.
func keepBaseline(path string, report policy.TestReport) error {
	data, err := json.Marshal(report)
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
	if len(entries) >= maxBaselines {
		slices.SortFunc(entries, func(a, b fs.DirEntry) int { return age(a).Compare(age(b)) })
		for _, e := range entries[:len(entries)-maxBaselines+1] {
			if err := os.Remove(filepath.Join(dir, e.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
		}
	}
	part := path + ".part"
	if err := os.WriteFile(part, data, 0o600); err != nil {
		return err
	}
	return os.Rename(part, path)
}
