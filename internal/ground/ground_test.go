package ground

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// clocked returns a store whose clock advances by a minute each time it is read.
func clocked(t *testing.T) *Store {
	now := time.Now().Add(-24 * time.Hour)
	return Open(t.TempDir(), os.RemoveAll, func() time.Time { now = now.Add(time.Minute); return now })
}

func never(Layer) bool { return false }

// with fills a layer's HOME with one file of the given size.
func with(t *testing.T, bytes int) func(string) (Record, error) {
	return func(dir string) (Record, error) {
		must(t, os.MkdirAll(filepath.Join(dir, Home), 0o700))
		return Record{Commit: "c"}, os.WriteFile(filepath.Join(dir, Home, "file"), make([]byte, bytes), 0o600)
	}
}

func keys(t *testing.T, s *Store) (all []string) {
	t.Helper()
	layers, err := s.List()
	must(t, err)
	for _, l := range layers {
		all = append(all, l.Repo+" "+l.Key)
	}
	return all
}

func TestConcurrentBuildsMakeOneLayer(t *testing.T) {
	s := Open(t.TempDir(), os.RemoveAll, time.Now)
	var built int
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			err := s.Build(t.Context(), "acme/widgets", "k", never, func(dir string) (Record, error) {
				built++
				return with(t, 10)(dir)
			})
			l, leave, ok := s.Use("acme/widgets", "k")
			defer leave()
			if err != nil || !ok || l.Commit != "c" || l.Repo != "acme/widgets" || l.Bytes != 10 {
				t.Errorf("%+v %v (%v)", l, ok, err)
			}
		})
	}
	all.Wait()
	if built != 1 {
		t.Errorf("built %d times, want once", built)
	}
}

func TestFailedBuildLeavesNothingAndIsTriedAgain(t *testing.T) {
	s := clocked(t)
	broken := errors.New("broken")
	if err := s.Build(t.Context(), "acme/widgets", "k", never, func(dir string) (Record, error) {
		_, err := with(t, 1)(dir)
		return Record{}, errors.Join(broken, err)
	}); !errors.Is(err, broken) {
		t.Errorf("%v, want the build's error", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "*", "*", "*")); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
	must(t, s.Build(t.Context(), "acme/widgets", "k", never, with(t, 1)))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := s.builders.Take(t.Context(), s.folder("acme/widgets", "other"))
	must(t, err)
	if err := s.Build(ctx, "acme/widgets", "other", never, with(t, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for another builder: %v", err)
	}
}

func TestStoredFailureIsReplacedOnRequest(t *testing.T) {
	s := clocked(t)
	fails := func(string) (Record, error) { return Record{Failed: &Failure{Command: "make"}}, nil }
	must(t, s.Build(t.Context(), "acme/widgets", "k", never, fails))
	must(t, s.Build(t.Context(), "acme/widgets", "k", never, with(t, 1)))
	if l, leave, ok := s.Use("acme/widgets", "k"); !ok || l.Failed == nil || l.Failed.Command != "make" {
		t.Errorf("%+v %v, want the failure", l, ok)
	} else {
		leave()
	}
	again := func(l Layer) bool { return l.Failed != nil }
	must(t, s.Build(t.Context(), "acme/widgets", "k", again, with(t, 1)))
	must(t, s.Build(t.Context(), "acme/widgets", "k", again, fails))
	if l, leave, ok := s.Use("acme/widgets", "k"); !ok || l.Failed != nil {
		t.Errorf("%+v %v, want the layer, which no failure replaces", l, ok)
	} else {
		leave()
	}
}

func TestDamagedLayerIsRebuilt(t *testing.T) {
	for name, damage := range map[string]func(dir string) error{
		"no record":                             func(dir string) error { return os.Remove(filepath.Join(dir, record)) },
		"an invalid record":                     func(dir string) error { return os.WriteFile(filepath.Join(dir, record), []byte("{"), 0o600) },
		"a file missing":                        func(dir string) error { return os.Remove(filepath.Join(dir, Home, "file")) },
		"an empty file":                         func(dir string) error { return os.Truncate(filepath.Join(dir, Home, "file"), 0) },
		"a file instead of the layer":           func(dir string) error { return errors.Join(os.RemoveAll(dir), os.WriteFile(dir, nil, 0o600)) },
		"a dangling link instead of the layer":  func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink("/nowhere/at/all", dir)) },
		"a link to itself instead of the layer": func(dir string) error { return errors.Join(os.RemoveAll(dir), os.Symlink(dir, dir)) },
		"a folder as record": func(dir string) error {
			return errors.Join(os.Remove(filepath.Join(dir, record)), os.MkdirAll(filepath.Join(dir, record, "x"), 0o700))
		},
		"a file as HOME": func(dir string) error {
			return errors.Join(os.RemoveAll(filepath.Join(dir, Home)), os.WriteFile(filepath.Join(dir, Home), nil, 0o600))
		},
		"a file instead of the repository's layers": func(dir string) error {
			repo := filepath.Dir(dir)
			return errors.Join(os.RemoveAll(repo), os.WriteFile(repo, nil, 0o600))
		},
		"a file instead of the owner's layers": func(dir string) error {
			owner := filepath.Dir(filepath.Dir(dir))
			return errors.Join(os.RemoveAll(owner), os.WriteFile(owner, nil, 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := clocked(t)
			must(t, s.Build(t.Context(), "acme/widgets", "k", never, with(t, 10)))
			must(t, damage(s.folder("acme/widgets", "k")))
			s = Open(s.dir, os.RemoveAll, s.now) // as after a restart
			if _, leave, ok := s.Use("acme/widgets", "k"); ok {
				t.Error("the damaged layer is used")
				leave()
			}
			must(t, s.Build(t.Context(), "acme/widgets", "k", never, with(t, 10)))
			l, leave, ok := s.Use("acme/widgets", "k")
			defer leave()
			if !ok || l.Bytes != 10 {
				t.Errorf("%+v %t, want a new layer", l, ok)
			}
		})
	}
}

func TestOldestUnusedLayersAreEvictedFirst(t *testing.T) {
	s := clocked(t)
	s.most, s.mostBytes = 2, 350
	build := func(repo, key string) { must(t, s.Build(t.Context(), repo, key, never, with(t, 100))) }
	build("acme/one", "a")
	_, leave, _ := s.Use("acme/one", "a")
	build("acme/one", "b")
	build("acme/one", "c") // a is the oldest, and in use
	must(t, s.Build(t.Context(), "acme/one", "f", never, func(string) (Record, error) { return Record{Failed: &Failure{}}, nil }))
	if d := cmp.Diff([]string{"acme/one f", "acme/one c", "acme/one a"}, keys(t, s)); d != "" {
		t.Error(d)
	}
	other := Open(s.dir, os.RemoveAll, s.now) // another process
	must(t, other.Evict(0))
	if d := cmp.Diff([]string{"acme/one f", "acme/one a"}, keys(t, s)); d != "" {
		t.Error("in another process:", d)
	}
	leave()
	build("acme/two", "a")
	build("acme/three", "a")
	build("acme/four", "a") // 400 bytes
	if d := cmp.Diff([]string{"acme/four a", "acme/one f", "acme/three a", "acme/two a"}, keys(t, s)); d != "" {
		t.Error(d)
	}
	if layers, bytes := s.Usage(); layers != 3 || bytes != 300 {
		t.Errorf("%d layers of %d bytes", layers, bytes)
	}
	must(t, s.Clean(s.now()))
	if left := keys(t, s); len(left) != 0 {
		t.Errorf("%q are left", left)
	}
}

func TestCopyIsIdenticalAndStaysInItsFolder(t *testing.T) {
	from, to, outside := t.TempDir(), t.TempDir(), t.TempDir()
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	write := func(root, name, text string, mode os.FileMode) {
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(root, name)), 0o755))
		must(t, os.WriteFile(filepath.Join(root, name), []byte(text), mode))
		must(t, os.Chtimes(filepath.Join(root, name), old, old))
	}
	write(from, "deps/tool", "layer", 0o755)
	write(from, "kept", "layer", 0o644)
	write(from, "trap/file", "layer", 0o644)
	write(from, "dir/in/read-only", "layer", 0o444)
	must(t, os.Symlink("../kept", filepath.Join(from, "deps", "link")))
	must(t, os.Chmod(filepath.Join(from, "dir", "in"), 0o555))
	t.Cleanup(func() {
		os.Chmod(filepath.Join(from, "dir", "in"), 0o755)
		os.Chmod(filepath.Join(to, "dir", "in"), 0o755)
	})
	write(to, "kept", "mine", 0o600)
	must(t, os.Symlink(outside, filepath.Join(to, "trap")))
	must(t, Copy(t.Context(), from, to))
	for name, want := range map[string]string{"deps/tool": "layer", "kept": "mine", "deps/link": "mine", "dir/in/read-only": "layer"} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: %q (%v), want %q", name, got, err, want)
		}
	}
	for name, mode := range map[string]os.FileMode{"deps/tool": 0o755, "dir/in": 0o555, "dir/in/read-only": 0o444} {
		if info, err := os.Stat(filepath.Join(to, name)); err != nil || info.Mode().Perm() != mode || !info.IsDir() && !info.ModTime().Equal(old) {
			t.Errorf("%s: %v %v (%v), want %v %v", name, info.Mode(), info.ModTime(), err, mode, old)
		}
	}
	if left, err := os.ReadDir(outside); err != nil || len(left) != 0 {
		t.Errorf("%v were written outside (%v)", left, err)
	}
}

func TestSetupIsProposedFromRootFiles(t *testing.T) {
	for files, want := range map[string]policy.Proposal{
		"go.mod go.sum":                      {Command: "go mod download", File: "go.mod"},
		"package.json package-lock.json":     {Command: "npm ci", File: "package-lock.json"},
		"package-lock.json pnpm-lock.yaml":   {Command: "pnpm install --frozen-lockfile", File: "pnpm-lock.yaml"},
		"yarn.lock":                          {Command: "yarn install --frozen-lockfile", File: "yarn.lock"},
		"requirements.txt uv.lock":           {Command: "uv sync --frozen", File: "uv.lock"},
		"poetry.lock":                        {Command: "poetry install", File: "poetry.lock"},
		"requirements.txt":                   {Command: "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt", File: "requirements.txt"},
		"Cargo.lock Cargo.toml":              {Command: "cargo fetch --locked", File: "Cargo.lock"},
		"Gemfile.lock":                       {Command: "bundle install", File: "Gemfile.lock"},
		"pom.xml":                            {Command: "mvn -B dependency:go-offline", File: "pom.xml"},
		"build.gradle.kts gradlew":           {Command: "./gradlew dependencies", File: "build.gradle.kts"},
		"README.md docs/go.mod requirements": {},
	} {
		if got := Propose(strings.Fields(files)); got != want {
			t.Errorf("%s: %+v, want %+v", files, got, want)
		}
	}
	for file, want := range map[string]bool{"go.sum": true, "web/package-lock.json": true, "requirements-dev.txt": true, "sub/build.gradle": true, "go.mod": false, "package.json": false} {
		if Decides(file) != want {
			t.Errorf("%s decides: %v, want %v", file, !want, want)
		}
	}
	if Key("ab", "c") == Key("a", "bc") {
		t.Error("the key does not separate its parts")
	}
}

// BenchmarkStart measures a program's start in the sandbox without a layer, and with a layer of 20,000 files on overlayfs.
func BenchmarkStart(b *testing.B) {
	box, err := sandbox.New(b.Context(), sandbox.Auto)
	if errors.Is(err, sandbox.ErrUnavailable) {
		b.Skip(err)
	}
	must(b, err)
	dir := b.TempDir()
	layer := Layer{dir: filepath.Join(dir, "layer")}
	for i := range 20_000 {
		name := filepath.Join(layer.dir, Work, "node_modules", fmt.Sprint(i/100), fmt.Sprint(i))
		if i%100 == 0 {
			must(b, os.MkdirAll(filepath.Dir(name), 0o755))
		}
		must(b, os.WriteFile(name, []byte("module.exports = 1\n"), 0o600))
	}
	must(b, os.MkdirAll(filepath.Join(layer.dir, Home, ".cache"), 0o755))
	for _, how := range []string{"none", "overlay"} {
		b.Run(how, func(b *testing.B) {
			s := Open(filepath.Join(dir, "layers"), os.RemoveAll, time.Now)
			s.Overlay = func() bool { return how == "overlay" }
			for i := range b.N {
				b.StopTimer()
				root := filepath.Join(dir, fmt.Sprint(how, b.N, i))
				home, work := filepath.Join(root, "home"), filepath.Join(root, "work")
				must(b, errors.Join(os.MkdirAll(home, 0o700), os.MkdirAll(work, 0o700)))
				b.StartTimer()
				spec := sandbox.Spec{Argv: []string{"/bin/true"}, Dir: work, Home: home}
				if how != "none" {
					spec.Overlays, _, err = s.Mount(b.Context(), layer, home, work, filepath.Join(root, "scratch"), true)
					must(b, err)
				}
				p, err := box.Start(b.Context(), spec)
				must(b, err)
				if exit, err := p.Wait(); err != nil || exit.Code != 0 {
					b.Fatal(exit, err)
				}
				b.StopTimer()
				must(b, os.RemoveAll(root))
				b.StartTimer()
			}
		})
	}
}
