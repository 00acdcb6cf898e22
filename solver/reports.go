package solver

import (
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/config"
)

// Bounds of reading report files: how many entries of the work tree are looked
// at, how many files are read and how much of each, in bytes.
const (
	maxReportEntries = 100_000
	maxReports       = 200
	maxReport        = 1 << 20
)

// stamp is what a report file was like.
type stamp struct {
	at   time.Time
	size int64
}

// stamps are the report files of a work tree as they are. What cannot be read is
// left out: the exit code decides.
func stamps(dir string, e config.Effective) map[string]stamp {
	found := map[string]stamp{}
	if len(e.Reports) == 0 {
		return found
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer root.Close()
	seen := 0
	// An error of the walk ends it; what was found by then is what there is.
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil
		case seen > maxReportEntries:
			return fs.SkipAll
		case d.IsDir() && path.Base(name) == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular() || !e.Reported(name):
			return nil
		}
		if info, err := d.Info(); err == nil {
			found[name] = stamp{info.ModTime(), info.Size()}
		}
		return nil
	})
	return found
}

// reports are the texts of the report files that changed since a time.
func reports(dir string, e config.Effective, before map[string]stamp) []string {
	var changed []string
	for name, now := range stamps(dir, e) {
		if was, ok := before[name]; !ok || was != now {
			changed = append(changed, name)
		}
	}
	if len(changed) == 0 {
		return nil
	}
	slices.Sort(changed)
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil
	}
	defer root.Close()
	var texts []string
	for _, name := range changed[:min(len(changed), maxReports)] {
		if text := readReport(root, name); text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

func readReport(root *os.Root, name string) string {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return ""
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	data, err := io.ReadAll(io.LimitReader(f, maxReport))
	if err != nil {
		return ""
	}
	return string(data)
}

// age is when a file was written; the zero time where that is not known.
func age(e fs.DirEntry) time.Time {
	info, err := e.Info()
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}
