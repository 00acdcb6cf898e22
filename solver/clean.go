package solver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pawlbot/pawl/internal/git"
)

// CleanAttempts removes from a data directory the transcripts of attempts that ended
// before a time, and what else is left of a thread once none remains. The HOME of agents goes a day
// after the last attempt. An attempt lasts a day at most, so the time must be at
// least that long ago.
func (s *Solver) CleanAttempts(ctx context.Context, dataDir string, before time.Time) (removed int, err error) {
	threads, err := filepath.Glob(filepath.Join(dataDir, "attempts", "*", "*", "*"))
	if err != nil {
		return 0, fmt.Errorf("list attempts: %w", err)
	}
	for _, dir := range threads {
		if err := ctx.Err(); err != nil {
			return removed, context.Cause(ctx)
		}
		n, threadErr := cleanThread(dir, before, s.Now().Add(-homeTime))
		removed += n
		err = errors.Join(err, threadErr) // one that cannot be removed keeps no other
	}
	return removed, err
}

// homeTime is how long an agent's HOME is kept after its last attempt, in which a
// session could be continued: it holds caches of build tools that can be large.
const homeTime = 24 * time.Hour

// cleanThread removes what is old of one thread's folder.
func cleanThread(dir string, before, idle time.Time) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("clean %s: %w", dir, err)
	}
	left, newest := 0, time.Time{}
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil || !e.IsDir() {
			continue
		}
		attempt := filepath.Join(dir, e.Name())
		written, err := lastWritten(attempt)
		if err != nil {
			return removed, err
		}
		if written.After(newest) {
			newest = written
		}
		if !written.Before(before) {
			left++
			continue
		}
		if err := git.Remove(attempt); err != nil {
			return removed, fmt.Errorf("clean %s: %w", attempt, err)
		}
		removed++
	}
	if left > 0 && newest.Before(idle) {
		for _, name := range []string{homeDir, baseDir} {
			if err := git.Remove(filepath.Join(dir, name)); err != nil {
				return removed, fmt.Errorf("clean %s: %w", dir, err)
			}
		}
	}
	if left > 0 || removed == 0 {
		return removed, nil
	}
	if err := git.Remove(dir); err != nil {
		return removed, fmt.Errorf("clean %s: %w", dir, err)
	}
	return removed, nil
}

// lastWritten is when an attempt's transcript was written last; without one, when
// its folder was.
func lastWritten(attempt string) (time.Time, error) {
	for _, path := range []string{filepath.Join(attempt, transcriptFile), attempt} {
		info, err := os.Lstat(path)
		if err == nil {
			return info.ModTime(), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return time.Time{}, err
		}
	}
	return time.Time{}, nil
}
