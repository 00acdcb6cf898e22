package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/wait"
)

// Database is the file name of a run's database, locked while the run works.
const Database = "pawl.db"

// runsKept is the number of earlier runs whose transcripts are kept (our choice).
const runsKept = 20

// NewRun creates a run's folder: 20260304-140300, or 20260304-140300-2 for another run in that second.
func NewRun(ctx context.Context, cache string, now time.Time) (dir string, err error) {
	dir = filepath.Join(cache, now.UTC().Format("20060102-150405"))
	err = errors.Join(os.MkdirAll(cache, 0o700), clearRuns(ctx, cache))
	for n, first := 2, dir; err == nil; n++ {
		if err = os.Mkdir(dir, 0o700); !errors.Is(err, fs.ErrExist) {
			break
		}
		dir, err = fmt.Sprintf("%s-%d", first, n), nil
	}
	return dir, err
}

// clearRuns removes older runs' folders, except running ones.
func clearRuns(ctx context.Context, cache string) error {
	runs, err := filepath.Glob(filepath.Join(cache, "[0-9]*-[0-9]*")) // oldest first
	if err != nil {
		return err
	}
	for _, dir := range runs[:max(0, len(runs)-runsKept)] {
		lock, err := wait.Lock(ctx, filepath.Join(dir, Database), 0)
		if errors.Is(err, wait.ErrLocked) {
			continue
		}
		if err == nil {
			err = git.Remove(dir)
			lock.Close()
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) { // another run may have removed it
			return fmt.Errorf("remove an older run: %w", err)
		}
	}
	return nil
}
