package ground

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/wait"
)

// The parts of a layer's folder, in addition to its Record.
const (
	Home   = "home"  // HOME
	Work   = "work"  // of the work tree, at the same paths
	Paths  = "paths" // the additional folders, by their number in Record.Paths
	record = "layer.json"
)

// Record describes a layer.
type Record struct {
	Key    string   `json:"key"`
	Commit string   `json:"commit,omitempty"` // that it was built from
	Image  string   `json:"image,omitempty"`  // the name and digest of an image that was unpacked
	Paths  []string `json:"paths,omitempty"`
	Env    []string `json:"env,omitempty"` // variables that an image sets
	// Failed is why this key has no layer.
	Failed *Failure  `json:"failed,omitempty"`
	Bytes  int64     `json:"bytes"`
	Made   time.Time `json:"made"`
}

// Failure is a failed setup.
type Failure struct {
	Command string `json:"command"`
	Result  string `json:"result"` // such as "exit code 1"
	Output  string `json:"output"` // its end
	// Thread asked for it, when its log had reached Seen.
	Thread string `json:"thread"`
	Seen   int64  `json:"seen"`
}

// Layer is a layer on disk, or a failure instead.
type Layer struct {
	Record
	Repo string // owner/name
	Used time.Time
	dir  string
}

// At is a layer under construction in a folder.
func At(dir string, r Record) Layer { return Layer{Record: r, dir: dir} }

// Store keeps the layers of all repositories. Any number of processes may use the same folder.
type Store struct {
	dir string
	// Overlay reports whether programs can get a layer by overlayfs; otherwise, or if nil, they get a copy.
	Overlay func() bool
	remove  func(dir string) error
	now     func() time.Time
	// most limits a repository's layers, mostBytes all layers together.
	most      int
	mostBytes int64
	builders  wait.Turns // by folder
	checked   sync.Map   // folder of a layer → when it was last found whole
}

// The store's limits. A layer of a large JavaScript or Rust project has some GB, and a branch that changes a lock
// file back and forth has two keys.
const (
	mostLayers = 4
	mostBytes  = 50 << 30
)

// checkEach is the time between two checks of a layer that is in use. Our choice: the files of a large one are counted
// in a second.
const checkEach = time.Hour

// Open opens the store in a folder. remove removes a folder with read-only parts.
func Open(dir string, remove func(dir string) error, now func() time.Time) *Store {
	return &Store{dir: filepath.Clean(dir), remove: remove, now: now, most: mostLayers, mostBytes: mostBytes}
}

func (s *Store) folder(repo, key string) string {
	return filepath.Join(s.dir, filepath.FromSlash(repo), key)
}

// Use returns a key's layer, or how its setup failed, and keeps it until leave is called; false for neither.
func (s *Store) Use(repo, key string) (l Layer, leave func(), ok bool) {
	dir := s.folder(repo, key)
	held, err := hold(dir, unix.LOCK_SH)
	if err != nil {
		return l, func() {}, false
	}
	l, ok = s.whole(dir)
	if !ok {
		held.Close()
		return l, func() {}, false
	}
	now := s.now()
	_ = os.Chtimes(filepath.Join(dir, record), now, now) // else it is evicted too early
	return l, func() { held.Close() }, true
}

// whole reads the layer in a folder. It is false for none, and for one that does not hold what was recorded.
func (s *Store) whole(dir string) (Layer, bool) {
	l, err := read(dir)
	if err != nil {
		return Layer{}, false
	}
	now := s.now()
	if last, ok := s.checked.Load(dir); ok && now.Sub(last.(time.Time)) < checkEach {
		return l, true
	}
	held, err := Size(dir)
	own, statErr := os.Stat(filepath.Join(dir, record))
	if errors.Join(err, statErr) != nil || held-own.Size() != l.Bytes {
		return Layer{}, false
	}
	s.checked.Store(dir, now)
	return l, true
}

// hold locks a layer among all processes, shared between its users, until the file is closed.
func hold(dir string, how int) (*os.File, error) {
	f, err := os.Open(filepath.Join(dir, record))
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Build makes a key's layer by fill, which puts its parts into a folder and returns the record; after an error nothing
// is stored. Concurrent builds of the key wait. An earlier layer of the key is replaced
// only where wanted says so of it, or where it is damaged, and only by a layer.
func (s *Store) Build(ctx context.Context, repo, key string, wanted func(Layer) bool, fill func(dir string) (Record, error)) error {
	dir := s.folder(repo, key)
	leave, err := s.builders.Take(ctx, dir)
	if err != nil {
		return err
	}
	defer leave()
	if l, ok := s.whole(dir); ok && !wanted(l) {
		return nil
	}
	if err := s.makeFolder(filepath.Dir(dir)); err != nil {
		return err
	}
	part, err := os.MkdirTemp(filepath.Dir(dir), key+".part-")
	if err != nil {
		return err
	}
	r, err := fill(part)
	if err == nil {
		err = s.put(dir, part, r)
	}
	if err != nil {
		return errors.Join(err, s.remove(part))
	}
	return s.Evict(s.mostBytes)
}

// makeFolder makes a folder below the store's, and removes whatever else is in its place.
func (s *Store) makeFolder(dir string) error {
	if dir != s.dir {
		if err := s.makeFolder(filepath.Dir(dir)); err != nil {
			return err
		}
		if info, err := os.Lstat(dir); err == nil && !info.IsDir() {
			if err := os.Remove(dir); err != nil {
				return err
			}
		}
	}
	return os.MkdirAll(dir, 0o700)
}

func (s *Store) put(dir, part string, r Record) (err error) {
	r.Key, r.Made = filepath.Base(dir), s.now()
	if r.Bytes, err = Size(part); err != nil {
		return err
	}
	data, err := json.Marshal(r)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(part, record), data, 0o600), os.Chtimes(filepath.Join(part, record), r.Made, r.Made))
	}
	if err == nil {
		err = s.drop(dir)
	}
	return errors.Join(err, os.Rename(part, dir))
}

// Evict removes unused layers, least recently used first, until the limits are kept: most layers per repository,
// and `bytes` for all. Failures do not count.
func (s *Store) Evict(bytes int64) error {
	all, err := s.list()
	all = slices.DeleteFunc(all, func(l Layer) bool { return l.Failed != nil })
	slices.SortFunc(all, func(a, b Layer) int { return a.Used.Compare(b.Used) })
	sum, count := int64(0), map[string]int{}
	for _, l := range all {
		sum, count[l.Repo] = sum+l.Bytes, count[l.Repo]+1
	}
	for _, l := range all {
		if sum <= bytes && count[l.Repo] <= s.most {
			continue
		}
		switch gone := s.drop(l.dir); {
		case errors.Is(gone, unix.EWOULDBLOCK):
		case gone != nil:
			err = errors.Join(err, gone)
		default:
			sum, count[l.Repo] = sum-l.Bytes, count[l.Repo]-1
		}
	}
	return err
}

// Clean removes layers unused since a time, and killed processes' incomplete ones from before it.
func (s *Store) Clean(before time.Time) error {
	all, err := s.list()
	for _, l := range all {
		if l.Used.Before(before) {
			if gone := s.drop(l.dir); !errors.Is(gone, unix.EWOULDBLOCK) {
				err = errors.Join(err, gone)
			}
		}
	}
	left, globErr := filepath.Glob(filepath.Join(s.dir, "*", "*", "*.*"))
	for _, dir := range left {
		if info, statErr := os.Stat(dir); statErr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, s.remove(dir))
		}
	}
	return errors.Join(err, globErr)
}

// drop removes a layer atomically; EWOULDBLOCK while it is used.
func (s *Store) drop(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	held, err := hold(dir, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	if err == nil { // else nobody uses it, since it has no record
		defer held.Close()
	}
	s.checked.Delete(dir)
	gone := fmt.Sprintf("%s.gone-%d", dir, s.now().UnixNano())
	if err := os.Rename(dir, gone); err != nil {
		return err
	}
	return s.remove(gone)
}

// List lists all layers, by repository.
func (s *Store) List() ([]Layer, error) {
	all, err := s.list()
	slices.SortFunc(all, func(a, b Layer) int { return cmp.Or(cmp.Compare(a.Repo, b.Repo), b.Used.Compare(a.Used)) })
	return all, err
}

// Held counts the layers and their bytes.
func (s *Store) Held() (layers int, bytes int64) {
	all, _ := s.list() // unreadable ones do not count
	for _, l := range all {
		if l.Failed == nil {
			layers, bytes = layers+1, bytes+l.Bytes
		}
	}
	return layers, bytes
}

func (s *Store) list() (all []Layer, err error) {
	dirs, err := filepath.Glob(filepath.Join(s.dir, "*", "*", "*"))
	for _, dir := range dirs {
		l, unread := read(dir)
		if unread == nil && filepath.Ext(dir) == "" {
			all = append(all, l)
		}
	}
	return all, err
}

func read(dir string) (l Layer, err error) {
	data, err := os.ReadFile(filepath.Join(dir, record))
	if err != nil {
		return l, err
	}
	info, err := os.Stat(filepath.Join(dir, record))
	if err != nil {
		return l, err
	}
	l.dir, l.Used = dir, info.ModTime()
	l.Repo = filepath.Base(filepath.Dir(filepath.Dir(dir))) + "/" + filepath.Base(filepath.Dir(dir))
	return l, json.Unmarshal(data, &l.Record)
}

// Size is the size of a folder's files, in bytes.
func Size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	return sum, err
}
