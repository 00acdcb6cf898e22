package testreport

import (
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/policy"
)

// Trial runs verify commands on one copy of the files. Close ends the trial.
type Trial struct {
	Run   func(command string) (policy.Verified, error)
	Close func()
}

// Verify runs commands in a trial until one fails, and compares the results with before, the base's results. A failed
// command runs again in a new trial, after the commands before it.
func Verify(commands []string, before []policy.Verified, open func() (Trial, error)) (all []policy.Verified, err error) {
	t, err := open()
	if err != nil {
		return nil, err
	}
	defer t.Close()
	for i, command := range commands {
		first, err := t.Run(command)
		if err != nil {
			return all, err
		}
		var base *policy.Verified
		if at := slices.IndexFunc(before, func(v policy.Verified) bool { return v.Command == command }); at >= 0 {
			base = &before[at]
		}
		v := first.Compare(base, nil)
		hopeless := v.TimedOut || v.Broken != ""
		if !v.Passed && !hopeless {
			again, err := repeat(commands[:i+1], open)
			if err != nil {
				return all, err
			}
			v = first.Compare(base, &again)
		}
		all = append(all, v)
		if !v.Passed {
			break
		}
	}
	return all, nil
}

func repeat(commands []string, open func() (Trial, error)) (v policy.Verified, err error) {
	t, err := open()
	if err != nil {
		return v, err
	}
	defer t.Close()
	for _, command := range commands {
		if v, err = t.Run(command); err != nil {
			break
		}
	}
	return v, err
}

const maxFailureTexts = 64 << 10

// Count adds test reports to a result. A failure in several reports counts once.
func Count(v *policy.Verified, all ...Report) {
	seen, text, counted, passing := map[string]bool{}, 0, false, false
	for _, t := range all {
		if t.Runner == "" {
			continue
		}
		v.Runner = t.Runner
		v.PassedTests, v.FailedTests = max(v.PassedTests, t.Passed), max(v.FailedTests, t.Failed)
		v.SkippedTests, v.Ran = max(v.SkippedTests, t.Skipped), append(v.Ran, t.Ran...)
		if t.Passed != NotCounted {
			counted = true
		}
		if t.somethingPassed() {
			passing = true
		}
		for _, f := range t.Failures {
			if seen[f.Name] || len(seen) == maxFailing {
				continue
			}
			seen[f.Name] = true
			text += len(f.Text)
			if text > maxFailureTexts {
				f.Text = ""
			}
			v.Failing = append(v.Failing, f)
		}
	}
	v.FailedTests = max(v.FailedTests, len(v.Failing))
	switch {
	case passing:
		v.NoTests = false
	case counted && v.PassedTests+v.FailedTests == 0:
		v.NoTests = true
	default:
		v.NoTests = policy.Unbuilt(v.Failing)
	}
	if v.FailedTests > 0 {
		v.Passed = false // even if the exit code is 0
	}
}

// Limits of the entries to examine in the work tree, and of the report files to read.
const (
	maxReportEntries = 100_000
	maxReports       = 200
)

// Watch records the state of the report files below a folder. reported selects them by name; nil selects none. changed
// reads the report files that changed since Watch was called.
func Watch(dir string, reported func(name string) bool) (changed func() []Report) {
	if reported == nil {
		return func() []Report { return nil }
	}
	before := stamps(dir, reported)
	return func() (all []Report) {
		now := stamps(dir, reported)
		maps.DeleteFunc(now, func(name string, at stamp) bool { return at == before[name] })
		names := slices.Sorted(maps.Keys(now))
		root, err := os.OpenRoot(dir)
		if err != nil {
			return nil
		}
		defer root.Close()
		for _, name := range names[:min(len(names), maxReports)] {
			if text, err := ReadRegular(root, name); err == nil {
				all = append(all, Read(string(text)))
			}
		}
		return all
	}
}

type stamp struct {
	at   time.Time
	size int64
}

// stamps returns the time and size of a folder's report files. It omits unreadable files: without a report, the exit
// code decides.
func stamps(dir string, reported func(name string) bool) map[string]stamp {
	found := map[string]stamp{}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return found
	}
	defer root.Close()
	seen := 0
	// After an error, stamps returns the files found so far.
	_ = fs.WalkDir(root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		seen++
		switch {
		case err != nil:
			return nil
		case seen > maxReportEntries:
			return fs.SkipAll
		case d.IsDir() && path.Base(name) == ".git":
			return fs.SkipDir
		case !d.Type().IsRegular() || !reported(name):
			return nil
		}
		if info, err := d.Info(); err == nil {
			found[name] = stamp{info.ModTime(), info.Size()}
		}
		return nil
	})
	return found
}

// MaxRead limits how much ReadRegular reads, in bytes.
const MaxRead = 1 << 20

var ErrUnread = errors.New("not a regular file of up to 1 MiB")

// ReadRegular reads the first MaxRead bytes of a file that an agent can write. It follows no link out of the root. It
// refuses files that are not regular, because a pipe could block.
func ReadRegular(root *os.Root, name string) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(ErrUnread, err)
	}
	return io.ReadAll(io.LimitReader(f, MaxRead))
}
