package ground

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/internal/sandbox"
)

// Over gives somebody the layer for a HOME, a work tree and the folders kept besides. Scratch is a folder of theirs
// that holds what they write to the last. What cannot be mounted here is copied; a HOME only where it is fresh. Files
// that are there already stay.
func (s *Store) Over(ctx context.Context, l Layer, home, work, scratch string, fresh bool) (overlays []sandbox.Overlay, folders []sandbox.Mount, err error) {
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
		if entries, err := os.ReadDir(p.lower); err != nil || len(entries) == 0 {
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, nil, err
			}
			continue
		}
		o := sandbox.Overlay{Lower: p.lower, Upper: p.upper, Work: filepath.Join(scratch, "overlay-"+strconv.Itoa(i))}
		switch {
		case s.Overlay != nil && s.Overlay() && !strings.ContainsAny(o.Lower+o.Upper+o.Work, `,:\"`):
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

// Copy copies a folder's files into another one, with modes and times, which build tools look at. What is there
// stays as it is, and nothing is written outside of it. Where the file system can, the copies share their blocks.
func Copy(ctx context.Context, from, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	type folder struct {
		name string
		info fs.FileInfo
	}
	var made []folder // they get mode and times when they are full
	err = filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err == nil {
			err = context.Cause(ctx)
		}
		name, relErr := filepath.Rel(from, path)
		if err != nil || relErr != nil || name == "." {
			return errors.Join(err, relErr)
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		there, missing := root.Lstat(name)
		switch {
		case missing == nil && d.IsDir() && !there.IsDir():
			return fs.SkipDir
		case missing == nil:
			return nil
		case d.IsDir():
			made = append(made, folder{name, info})
			return root.Mkdir(name, 0o700)
		case d.Type() == fs.ModeSymlink:
			target, err := os.Readlink(path)
			return errors.Join(err, root.Symlink(target, name))
		case d.Type().IsRegular():
			return copyFile(root, path, name, info)
		}
		return nil // a pipe or a socket, which nobody can go on with
	})
	for i := len(made) - 1; i >= 0 && err == nil; i-- {
		f := made[i]
		err = errors.Join(root.Chtimes(f.name, f.info.ModTime(), f.info.ModTime()), root.Chmod(f.name, f.info.Mode().Perm()))
	}
	return err
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
