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

// Trial runs verify commands over one state of the files. Close ends it.
type Trial struct {
	Run   func(command string) (policy.Verified, error)
	Close func()
}

// Verify runs commands in a trial until one fails, and says what that means beside what they came to before, on the
// base. What fails is run again at once in a trial of its own, after the commands before it.
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

// repeat runs commands and returns the result of the last one.
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

// maxFailureTexts bounds the texts that are kept of a command's failures together, in bytes.
const maxFailureTexts = 64 << 10

// Count takes over what the tests came to. Runners tell the same failure in
// several places; it counts once.
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
		v.Passed = false // whatever its exit code
	}
}

// Bounds of reading report files: how many entries of the work tree are looked
// at, and how many files are read.
const (
	maxReportEntries = 100_000
	maxReports       = 200
)

// Watch looks at the report files below a folder, those whose names are reported, and returns what reads the ones
// that changed since. A nil function reports none.
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

// stamp is what a file was like when it was looked at.
type stamp struct {
	at   time.Time
	size int64
}

// stamps are the report files of a folder as they are. What cannot be read is
// left out: the exit code decides.
func stamps(dir string, reported func(name string) bool) map[string]stamp {
	found := map[string]stamp{}
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

// MaxRead bounds what is read of one file that an agent can write, in bytes.
const MaxRead = 1 << 20

var ErrUnread = errors.New("no regular file of up to 1 MiB")

// ReadRegular reads the beginning of a file that an agent can write. It follows no link out of the root and
// opens nothing but a regular file: a pipe in its place must not be waited for.
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
