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

// The parts of a layer's folder, besides the Record.
const (
	Home   = "home"  // HOME
	Work   = "work"  // files in the work tree, at the same paths
	Paths  = "paths" // additional folders, named by their index in Record.Paths
	record = "layer.json"
)

// Record describes a layer.
type Record struct {
	Key    string   `json:"key"`
	Commit string   `json:"commit,omitempty"` // the commit whose setup ran
	Image  string   `json:"image,omitempty"`  // name and digest of the unpacked image
	Paths  []string `json:"paths,omitempty"`
	Env    []string `json:"env,omitempty"` // variables that an image sets
	// Failed is set if the setup failed; then the record has no layer.
	Failed *Failure  `json:"failed,omitempty"`
	Bytes  int64     `json:"bytes"`
	Made   time.Time `json:"made"`
}

// Failure is a failed setup.
type Failure struct {
	Command string `json:"command"`
	Result  string `json:"result"` // such as "exit code 1"
	Output  string `json:"output"` // the end of the output
	// Thread requested the setup; Seen was the last event in its log.
	Thread string `json:"thread"`
	Seen   int64  `json:"seen"`
}

// Layer is a layer on disk, or the record of a failed setup.
type Layer struct {
	Record
	Repo string // owner/name
	Used time.Time
	dir  string
}

// At returns a layer that is under construction in a folder.
func At(dir string, r Record) Layer { return Layer{Record: r, dir: dir} }

// Store keeps the layers of all repositories. Its methods may be called concurrently, even by several processes that
// use the same folder.
type Store struct {
	dir string
	// Overlay reports whether layers can be mounted with overlayfs. If it is false or nil, layers are copied.
	Overlay func() bool
	remove  func(dir string) error
	now     func() time.Time
	// most limits the layers of one repository, mostBytes the size of all layers.
	most      int
	mostBytes int64
	builders  wait.Turns // by folder
	checked   sync.Map   // layer's folder → time of the last check that passed
}

// The store's limits, our choice. A layer of a large JavaScript or Rust project takes several GB. A branch that changes
// a lock file back and forth needs two layers.
const (
	mostLayers = 4
	mostBytes  = 50 << 30
)

// checkEach is the time between two checks of a layer's size. Our choice: a check of a large layer takes a second.
const checkEach = time.Hour

// Open opens the store in a folder. remove must delete a folder even if it has read-only parts.
func Open(dir string, remove func(dir string) error, now func() time.Time) *Store {
	return &Store{dir: filepath.Clean(dir), remove: remove, now: now, most: mostLayers, mostBytes: mostBytes}
}

func (s *Store) folder(repo, key string) string {
	return filepath.Join(s.dir, filepath.FromSlash(repo), key)
}

// Use returns a key's layer or failed setup; ok is false if there is neither. The layer is not removed until leave is
// called.
func (s *Store) Use(repo, key string) (l Layer, leave func(), ok bool) {
	dir := s.folder(repo, key)
	lock, err := hold(dir, unix.LOCK_SH)
	if err != nil {
		return l, func() {}, false
	}
	l, ok = s.whole(dir)
	if !ok {
		lock.Close()
		return l, func() {}, false
	}
	now := s.now()
	_ = os.Chtimes(filepath.Join(dir, record), now, now) // after an error it may be evicted too early
	return l, func() { lock.Close() }, true
}

// whole reads the layer in a folder. It returns false if there is none or its size differs from the record.
func (s *Store) whole(dir string) (Layer, bool) {
	l, err := read(dir)
	if err != nil {
		return Layer{}, false
	}
	now := s.now()
	if last, ok := s.checked.Load(dir); ok && now.Sub(last.(time.Time)) < checkEach {
		return l, true
	}
	size, err := Size(dir)
	own, statErr := os.Stat(filepath.Join(dir, record))
	if errors.Join(err, statErr) != nil || size-own.Size() != l.Bytes {
		return Layer{}, false
	}
	s.checked.Store(dir, now)
	return l, true
}

// hold locks a layer against all processes until the file is closed. how is LOCK_SH or LOCK_EX.
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

// Build creates a key's layer. fill writes the parts into a folder and returns the record; if it fails, nothing is
// stored. Concurrent builds of a key in this process wait for each other. An existing layer is replaced only if it is
// damaged or wanted returns true for it.
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

// makeFolder creates a folder in the store. It removes files that are in the way.
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

// Evict removes layers that are not in use, least recently used first. It stops once each repository has at most s.most
// layers and all layers take at most this many bytes. Failed setups do not count.
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

// Clean removes layers last used before a time, and older incomplete layers of killed processes.
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

// drop removes a layer atomically. It returns EWOULDBLOCK while the layer is in use.
func (s *Store) drop(dir string) error {
	if _, err := os.Lstat(dir); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	lock, err := hold(dir, unix.LOCK_EX)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return err
	}
	if err == nil { // nobody uses a layer without a record
		defer lock.Close()
	}
	s.checked.Delete(dir)
	gone := fmt.Sprintf("%s.gone-%d", dir, s.now().UnixNano())
	if err := os.Rename(dir, gone); err != nil {
		return err
	}
	return s.remove(gone)
}

// List returns all layers by repository, most recently used first, with failed setups.
func (s *Store) List() ([]Layer, error) {
	all, err := s.list()
	slices.SortFunc(all, func(a, b Layer) int { return cmp.Or(cmp.Compare(a.Repo, b.Repo), b.Used.Compare(a.Used)) })
	return all, err
}

// Usage returns the number of layers and their size. Failed setups do not count.
func (s *Store) Usage() (layers int, bytes int64) {
	all, _ := s.list() // unreadable layers do not count
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

// Size returns the size of all files in a folder, in bytes.
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
