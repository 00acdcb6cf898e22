package ground

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/internal/sandbox"
)

// Mount puts a layer below a HOME, a work tree and the additional folders. Writes to the additional folders go to
// scratch. Without overlayfs, Mount copies the layer, but HOME only if fresh is set. Existing files stay.
func (s *Store) Mount(ctx context.Context, l Layer, home, work, scratch string, fresh bool) (overlays []sandbox.Overlay, folders []sandbox.Mount, err error) {
	type part struct {
		lower, upper string
		copied       bool
	}
	parts := []part{{filepath.Join(l.dir, Home), home, fresh}, {filepath.Join(l.dir, Work), work, true}}
	for i, p := range l.Paths {
		upper := filepath.Join(scratch, "path-"+strconv.Itoa(i))
		if err := os.MkdirAll(upper, 0o700); err != nil {
			return nil, nil, err
		}
		parts = append(parts, part{filepath.Join(l.dir, Paths, strconv.Itoa(i)), upper, true})
		folders = append(folders, sandbox.Mount{From: upper, To: p})
	}
	for i, p := range parts {
		entries, err := os.ReadDir(p.lower)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, nil, err
		}
		if len(entries) == 0 {
			continue
		}
		o := sandbox.Overlay{Lower: p.lower, Upper: p.upper, Work: filepath.Join(scratch, "overlay-"+strconv.Itoa(i))}
		switch {
		case s.overlays(o):
			if err := errors.Join(s.remove(o.Work), os.MkdirAll(o.Work, 0o700)); err != nil {
				return nil, nil, err
			}
			overlays = append(overlays, o)
		case p.copied:
			if err := Copy(ctx, p.lower, p.upper); err != nil {
				return nil, nil, err
			}
		}
	}
	return overlays, folders, nil
}

// overlays reports whether the kernel can mount an overlay with these paths. The kernel splits mount options at commas
// and colons.
func (s *Store) overlays(o sandbox.Overlay) bool {
	if s.Overlay == nil || strings.ContainsAny(o.Lower+o.Upper+o.Work, `,:\"`) {
		return false
	}
	return s.Overlay()
}

// Copy copies a folder's files into another folder, with modes and times, which build tools check. Existing files
// stay, and nothing is written outside the folder. The copies share blocks if the file system can.
func Copy(ctx context.Context, from, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	c := copier{root: root}
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		name, err := filepath.Rel(from, path)
		if err != nil || name == "." {
			return err
		}
		return c.entry(path, name, d)
	})
	if err != nil {
		return err
	}
	return c.finish()
}

// copier copies the entries of one folder.
type copier struct {
	root *os.Root
	made []folder
}

// folder is a created folder. finish sets its mode and times, after all its files are written.
type folder struct {
	name string
	info fs.FileInfo
}

func (c *copier) entry(path, name string, d fs.DirEntry) error {
	info, err := d.Info()
	if err != nil {
		return err
	}
	old, err := c.root.Lstat(name)
	if err == nil {
		if d.IsDir() && !old.IsDir() {
			return fs.SkipDir
		}
		return nil
	}
	switch {
	case d.IsDir():
		c.made = append(c.made, folder{name, info})
		return c.root.Mkdir(name, 0o700)
	case d.Type() == fs.ModeSymlink:
		target, err := os.Readlink(path)
		return errors.Join(err, c.root.Symlink(target, name))
	case d.Type().IsRegular():
		return copyFile(c.root, path, name, info)
	}
	return nil // a pipe or a socket, which is useless as a copy
}

func (c *copier) finish() error {
	for _, f := range slices.Backward(c.made) {
		at := f.info.ModTime()
		err := errors.Join(c.root.Chtimes(f.name, at, at), c.root.Chmod(f.name, f.info.Mode().Perm()))
		if err != nil {
			return err
		}
	}
	return nil
}

func copyFile(root *os.Root, path, name string, info fs.FileInfo) error {
	in, err := os.Open(path)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Chmod(info.Mode().Perm()), out.Close(), root.Chtimes(name, info.ModTime(), info.ModTime()))
}
