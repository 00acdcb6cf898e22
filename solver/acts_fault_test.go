package solver_test

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
	"github.com/pawlbot/pawl/solver/thread"
)

// empty truncates every file below dir.
func empty(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return errors.Join(os.Chmod(path, 0o600), os.Truncate(path, 0))
	})
}

func madeAt(path string) time.Time {
	info, err := os.Stat(path)
	if err != nil {
		return time.Time{}
	}
	return info.ModTime()
}

func cloneOf(a *acts) string { return filepath.Join(a.cfg.DataDir, "repos", "acme", "widgets.git") }

func TestDamagedCloneIsReplaced(t *testing.T) {
	for name, damage := range map[string]func(a *acts) error{
		"no packs":          func(a *acts) error { return os.RemoveAll(filepath.Join(cloneOf(a), "objects", "pack")) },
		"no objects":        func(a *acts) error { return os.RemoveAll(filepath.Join(cloneOf(a), "objects")) },
		"empty objects":     func(a *acts) error { return empty(filepath.Join(cloneOf(a), "objects")) },
		"empty references":  func(a *acts) error { return empty(filepath.Join(cloneOf(a), "refs")) },
		"an empty HEAD":     func(a *acts) error { return os.Truncate(filepath.Join(cloneOf(a), "HEAD"), 0) },
		"an invalid config": func(a *acts) error { return os.WriteFile(filepath.Join(cloneOf(a), "config"), []byte("\x00[["), 0o600) },
		"a file instead of the clone": func(a *acts) error {
			return errors.Join(os.RemoveAll(cloneOf(a)), os.WriteFile(cloneOf(a), nil, 0o600))
		},
		"a file as logs":     func(a *acts) error { return os.WriteFile(filepath.Join(cloneOf(a), "logs"), []byte("x\n"), 0o600) },
		"a folder as a lock": func(a *acts) error { return os.MkdirAll(filepath.Join(cloneOf(a), "packed-refs.lock", "x"), 0o700) },
		"a file as the owner's folder": func(a *acts) error {
			owner := filepath.Dir(cloneOf(a))
			return errors.Join(os.RemoveAll(owner), os.WriteFile(owner, nil, 0o600))
		},
		"a flipped byte": func(a *acts) error {
			packs, err := filepath.Glob(filepath.Join(cloneOf(a), "objects", "pack", "*.pack"))
			for _, pack := range packs {
				data, readErr := os.ReadFile(pack)
				data[len(data)-22] ^= 1 // in the last object; the last 20 bytes are the pack's checksum
				err = errors.Join(err, readErr, os.Chmod(pack, 0o600), os.WriteFile(pack, data, 0o600))
			}
			return err
		},
		"one pack of two": func(a *acts) error {
			packs, err := filepath.Glob(filepath.Join(cloneOf(a), "objects", "pack", "*"))
			oldest := slices.MinFunc(packs, func(a, b string) int { return madeAt(a).Compare(madeAt(b)) })
			base := strings.TrimSuffix(oldest, filepath.Ext(oldest))
			return errors.Join(err, os.Remove(base+".pack"), os.Remove(base+".idx"))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, nil)
			a.Agent(testrig.PlainAgent, "")
			aLine(a)
			a.Must(damage(a))
			a.Push("main", "docs: a page", "b.txt", "b\n") // there is something to fetch
			a.comments(1, testrig.Writer, "/pawl solve one more")
			if text := a.Git("show", "pawl/issue-1:a.txt"); strings.Count(text, "line ") != 2 {
				t.Errorf("the branch contains %q\n%s", text, a.StatusComment(1))
			}
		})
	}
}

func TestCloneDamagedByAnAttemptIsReplaced(t *testing.T) {
	for name, damage := range map[string]string{
		"an empty HEAD":    ": > HEAD",
		"empty references": "find refs -type f -exec truncate -s 0 {} +",
		"no objects":       "rm -rf objects",
		"no clone":         `rm -rf "$PWD"`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newActs(t, nil)
			a.Agent(testrig.PlainAgent+`if [ -e "$CTRL/damage" ]; then . "$CTRL/damage"; fi`, "")
			aLine(a)
			script := fmt.Sprintf("rm \"$CTRL/damage\" && cd %q && %s\n", cloneOf(a), damage)
			a.Must(os.WriteFile(filepath.Join(a.Ctrl(), "damage"), []byte(script), 0o600))
			a.comments(1, testrig.Writer, "/pawl solve one more")
			if text := a.Git("show", "pawl/issue-1:a.txt"); strings.Count(text, "line ") != 2 {
				t.Errorf("the branch contains %q\n%s", text, a.StatusComment(1))
			}
		})
	}
}

func TestRepeatedCloneDamageIsReported(t *testing.T) {
	t.Parallel()
	a := newActs(t, nil)
	a.Agent(testrig.PlainAgent, "")
	aLine(a)
	for range 2 {
		a.Must(errors.Join(os.RemoveAll(cloneOf(a)), os.WriteFile(cloneOf(a), nil, 0o600)))
		a.comments(1, testrig.Writer, "/pawl solve one more")
	}
	if s := a.state(1); s.Decision.Rule != "pawl_failed" || !strings.Contains(a.StatusComment(1), "check its disk") {
		t.Errorf("%+v\n%s", s.Decision, a.StatusComment(1))
	}
}

func TestRepeatedFailureIsReportedOnce(t *testing.T) {
	t.Parallel()
	a := askedFor(t)
	broken := errors.New("the hook said no")
	a.before = func(b thread.Batch) error {
		if slices.ContainsFunc(b.Events, func(e thread.NewEvent) bool { return e.Kind == thread.KindAttemptStarted }) {
			return broken
		}
		return nil
	}
	texts := map[string]int{}
	for range 20 {
		leases, err := a.store.Claim(t.Context(), "node-1", 1)
		a.Must(err)
		for _, l := range leases {
			if err := a.solver.Work(t.Context(), l, time.Now()); !errors.Is(err, broken) {
				t.Fatalf("the step ended with %v", err)
			}
			texts[a.StatusComment(1)]++
		}
		a.Clock.Reach(a.Clock.Now().Add(10 * time.Minute))
	}
	if len(texts) != 2 { // one text before the report, and one after it
		t.Errorf("%d texts: %v", len(texts), texts)
	}
	if s := a.StatusComment(1); !strings.Contains(s, "the hook said no") {
		t.Error(s)
	}
	a.before = nil
	a.settle()
	if s := a.state(1); s.Decision.Action != "done" {
		t.Errorf("after the error ended: %+v", s.Decision)
	}
}
