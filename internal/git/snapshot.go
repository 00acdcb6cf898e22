package git

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/dustin/go-humanize"
)

// Snapshot is the work tree as git would commit it.
type Snapshot struct {
	Tree string // id of the tree
	// Left lists up to maxLeft paths of the work tree that Tree leaves out, unordered. Tree has the previous commit's
	// content at these paths, if any.
	Left []Left
}

type Left struct {
	Path   string
	Reason string
}

// maxLeft limits Snapshot.Left.
const maxLeft = 100

// Snapshot writes the checkout's current files as a tree, committed or not, except ignored ones. It leaves out and
// reports files that cannot be in a repository or would harm users who check it out: nested repositories, links out of
// the tree, pipes, sockets, devices, unreadable files, names that some systems read as .git, and files beyond the size
// limits.
//
// Too many changed files are ErrTooLarge. A work tree that would make git hang or read without end is ErrUnsafe.
func (w *Workspace) Snapshot(ctx context.Context) (Snapshot, error) {
	slow := fmt.Errorf("%w: git did not finish reading it within %s", ErrUnsafe, w.limits.time)
	ctx, cancel := context.WithTimeoutCause(ctx, w.limits.time, slow)
	defer cancel()
	s, err := w.snapshot(ctx)
	if err != nil {
		return Snapshot{}, fmt.Errorf("snapshot of the checkout: %w", err)
	}
	return s, nil
}

// snapshot surveys the tree, decides about every changed path, updates the host's index and writes it as a tree.
func (w *Workspace) snapshot(ctx context.Context) (Snapshot, error) {
	info, err := os.Lstat(w.Dir)
	switch {
	case err != nil, !info.IsDir():
		return Snapshot{}, fmt.Errorf("%w: the checkout itself was removed or replaced", ErrUnsafe)
	case info.Mode()&0o500 != 0o500:
		return Snapshot{}, fmt.Errorf("%w: the checkout itself can no longer be entered or read (mode %o)", ErrUnsafe, info.Mode().Perm())
	}
	root, err := os.OpenRoot(w.Dir)
	if err != nil {
		return Snapshot{}, err
	}
	defer root.Close()
	s := sorter{root: root, limits: w.limits, seen: map[string]bool{}, real: map[string]bool{".": true}}
	if err := s.survey(ctx, root, "", 0); err != nil {
		return Snapshot{}, err
	}
	w.attributes = s.attributes
	list := command{args: []string{"ls-files", "-z", "--modified", "--others", "--exclude-standard"}}
	if err := w.each(ctx, list, s.sort); err != nil {
		return Snapshot{}, err
	}
	for _, step := range []struct{ flags, paths string }{
		{"--force-remove", s.remove.String()},
		{"--add --replace", s.add.String()},
	} {
		if step.paths == "" {
			continue
		}
		args := append([]string{"update-index"}, strings.Fields(step.flags)...)
		if _, err := w.run(ctx, command{args: append(args, "-z", "--stdin"), stdin: step.paths}); err != nil {
			return Snapshot{}, err
		}
	}
	tree, err := line(w.run(ctx, command{args: []string{"write-tree"}}))
	return Snapshot{Tree: tree, Left: s.left}, err
}

// Ignored returns the work tree's ignored files and folders. A fully ignored folder is one entry.
func (w *Workspace) Ignored(ctx context.Context) (paths []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, w.limits.time)
	defer cancel()
	list := command{args: []string{"ls-files", "-z", "--others", "--ignored", "--exclude-standard", "--directory"}}
	err = w.each(ctx, list, func(path string) error {
		paths = append(paths, strings.TrimSuffix(path, "/"))
		return nil
	})
	return paths, err
}

// whiteout reports whether a file is overlayfs's record that a program removed a lower layer's file.
func whiteout(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	return info.Mode()&fs.ModeCharDevice != 0 && stat.Rdev == 0
}

// sorter decides what happens to each path that differs from the index.
type sorter struct {
	root   *os.Root
	limits limits

	seen        map[string]bool // paths already sorted
	real        map[string]bool // by directory: whether it is a real directory, not a link
	entries     int             // entries that the survey read
	attributes  bool            // the survey found a .gitattributes
	files       int             // changed files
	bytes       int64
	add, remove strings.Builder // for git, NUL-terminated
	left        []Left
}

func (s *sorter) leave(path, reason string) {
	known := slices.ContainsFunc(s.left, func(l Left) bool { return l.Path == path })
	if len(s.left) < maxLeft && !known {
		s.left = append(s.left, Left{Path: path, Reason: reason})
	}
}

func (s *sorter) sort(path string) error {
	if s.seen[path] {
		return nil
	}
	if s.files++; s.files > s.limits.files {
		folder, n := s.fullest()
		return tooLarge("more than %d files changed, %d of them in %.200q; add generated files to .gitignore", s.limits.files, n, folder)
	}
	s.seen[path] = true
	if strings.HasSuffix(path, "/") {
		s.leave(strings.TrimSuffix(path, "/"), "another git repository")
		return nil
	}
	for part := range strings.SplitSeq(path, "/") {
		if looksLikeDotGit(part) {
			s.leave(path, "some systems read this name as .git")
			return nil
		}
	}
	if !s.inRealDirs(path) {
		s.remove.WriteString(path + "\x00")
		return nil
	}
	info, err := s.root.Lstat(path)
	switch {
	case isAbsent(err):
		s.remove.WriteString(path + "\x00")
		return nil
	case err != nil:
		s.leave(path, "unreadable")
		return nil
	}
	return s.sortFile(path, info)
}

// fullest returns the top-level folder with the most changed files.
func (s *sorter) fullest() (folder string, most int) {
	count := map[string]int{}
	for path := range s.seen {
		top, _, within := strings.Cut(path, "/")
		if !within {
			top = "."
		}
		count[top]++
	}
	for _, top := range slices.Sorted(maps.Keys(count)) {
		if count[top] > most {
			folder, most = top, count[top]
		}
	}
	return folder, most
}

func (s *sorter) sortFile(path string, info fs.FileInfo) error {
	switch mode := info.Mode(); {
	case mode.IsDir(), whiteout(info):
		s.remove.WriteString(path + "\x00") // a directory or overlayfs's record of a removal replaced the file
	case mode&fs.ModeSymlink != 0:
		if reason := s.badLink(path); reason != "" {
			s.leave(path, reason)
			return nil
		}
		s.add.WriteString(path + "\x00")
	case !mode.IsRegular():
		s.leave(path, "not a file: "+mode.Type().String())
	case info.Size() > s.limits.fileBytes:
		s.leave(path, fmt.Sprintf("%s; Pawl commits no file larger than %s", humanize.IBytes(uint64(info.Size())), humanize.IBytes(uint64(s.limits.fileBytes))))
	case s.bytes+info.Size() > s.limits.totalBytes:
		s.leave(path, "the changed files have more than "+humanize.IBytes(uint64(s.limits.totalBytes))+" in total")
	case !s.readable(path):
		s.leave(path, "unreadable")
	default:
		s.bytes += info.Size()
		s.add.WriteString(path + "\x00")
	}
	return nil
}

func (s *sorter) readable(path string) bool {
	f, err := s.root.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return false
	}
	f.Close()
	return true
}

// inRealDirs reports whether every parent directory of path is a real directory, not a link.
func (s *sorter) inRealDirs(path string) bool {
	for i, c := range path {
		if c != '/' {
			continue
		}
		dir := path[:i]
		real, known := s.real[dir]
		if !known {
			real = s.isRealDir(dir)
			s.real[dir] = real
		}
		if !real {
			return false
		}
	}
	return true
}

func (s *sorter) isRealDir(dir string) bool {
	info, err := s.root.Lstat(dir)
	if err != nil {
		return !isAbsent(err) // count an unreadable directory as real; its files are reported as unreadable
	}
	return info.IsDir()
}

func isAbsent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}
