package ground

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	v1 "github.com/google/go-containerregistry/pkg/v1"
)

// unpack applies an image's layers in a folder, up to room bytes. Images are untrusted: unpack writes nothing outside
// the folder, gives all files to Pawl's user, and creates no devices or set-user-ID programs.
func unpack(dir string, layers []v1.Layer, room int64) error {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return err
	}
	defer root.Close()
	u := unpacker{root: root, room: room, files: maxFiles}
	for _, l := range layers {
		if err := u.layer(l); err != nil {
			return err
		}
	}
	return nil
}

type unpacker struct {
	root  *os.Root
	room  int64           // remaining bytes
	files int             // remaining entries
	own   map[string]bool // entries of the current layer
}

// layer applies one layer. It reads to the end of the stream, where the digest is verified.
func (u *unpacker) layer(l v1.Layer) error {
	text, err := l.Uncompressed()
	if err != nil {
		return err
	}
	defer text.Close()
	u.own = map[string]bool{}
	for in := tar.NewReader(text); ; {
		h, err := in.Next()
		if err == io.EOF {
			_, err = io.Copy(io.Discard, text)
			return err
		}
		if err != nil {
			return err
		}
		if u.files--; u.files < 0 {
			return fmt.Errorf("it has more than %d entries", maxFiles)
		}
		if err := u.apply(h, in); err != nil {
			return fmt.Errorf("entry %.200q: %w", h.Name, err)
		}
	}
}

// apply applies an entry. A name with the prefix .wh. removes files of lower layers (OCI image specification).
func (u *unpacker) apply(h *tar.Header, in io.Reader) error {
	name, err := local(h.Name)
	if name == "." || err != nil {
		return err
	}
	for p := name; p != "."; p = path.Dir(p) {
		u.own[p] = true
	}
	dir, base := path.Dir(name), path.Base(name)
	if base == ".wh..wh..opq" {
		return u.clear(dir)
	}
	hidden, hides := strings.CutPrefix(base, ".wh.")
	if !hides {
		return u.entry(name, h, in)
	}
	ofStorageDriver := strings.Trim(hidden, ".") == "" || strings.HasPrefix(hidden, ".wh.")
	if ofStorageDriver {
		return nil
	}
	return u.root.RemoveAll(path.Join(dir, hidden))
}

// local returns a clean path inside the root. It accepts a leading slash.
func local(name string) (string, error) {
	clean := path.Clean(strings.TrimLeft(name, "/"))
	if !filepath.IsLocal(clean) || strings.ContainsRune(clean, 0) {
		return "", fmt.Errorf("%.200q points outside the image", name)
	}
	return clean, nil
}

// clear removes lower layers' files in a folder.
func (u *unpacker) clear(dir string) error {
	return fs.WalkDir(u.root.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if u.own[p] || p == "." {
			return nil
		}
		if err := u.root.RemoveAll(p); err != nil || !d.IsDir() {
			return err
		}
		return fs.SkipDir
	})
}

func (u *unpacker) entry(name string, h *tar.Header, in io.Reader) error {
	if err := u.root.MkdirAll(path.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(h.Mode) & fs.ModePerm // without set-user-ID
	old, err := u.root.Lstat(name)
	if err == nil {
		if old.IsDir() && h.Typeflag == tar.TypeDir {
			return u.root.Chmod(name, mode|0o700)
		}
		if err := u.root.RemoveAll(name); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		return u.root.Mkdir(name, mode|0o700)
	case tar.TypeReg:
		if h.Size > u.room {
			return syscall.ENOSPC
		}
		u.room -= h.Size
		f, err := u.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode|0o600)
		if err != nil {
			return err
		}
		_, err = io.Copy(f, in)
		return errors.Join(err, f.Close(), u.root.Chtimes(name, h.ModTime, h.ModTime))
	case tar.TypeSymlink:
		return u.root.Symlink(h.Linkname, name)
	case tar.TypeLink:
		target, err := local(h.Linkname)
		if err != nil {
			return err
		}
		return u.root.Link(target, name)
	}
	return nil // devices and pipes
}
