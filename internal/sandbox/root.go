package sandbox

import (
	"bufio"
	"bytes"
	"debug/elf"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// guestDir is the place of a host's program inside a root, which may have other files at the program's own path.
const guestDir = "/opt/pawl"

// maxRootArguments limits a root's part of the command line; bubblewrap takes 9,000 arguments.
const maxRootArguments = 7500

// OpenIn opens a root's file for reading. Links resolve inside the root, also absolute ones and those that lead out
// of it.
func OpenIn(root, path string) (*os.File, error) {
	dir, err := unix.Open(root, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: root, Err: err}
	}
	defer unix.Close(dir)
	fd, err := unix.Openat2(dir, path, &unix.OpenHow{Flags: unix.O_RDONLY | unix.O_NONBLOCK | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT})
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	return os.NewFile(uintptr(fd), path), nil
}

// Has reports whether a root has a file.
func Has(root, path string) error {
	f, err := OpenIn(root, path)
	if err != nil {
		return fmt.Errorf("the image has no %s: use one that has it", path)
	}
	return f.Close()
}

// rootMounts show a root's entries. A folder that contains one of Pawl's own mounts is rebuilt with the same
// entries, and other files give way to it: bubblewrap would follow the root's links to that place, out to the host.
func rootMounts(root string, own []string) (args []string, err error) {
	var show func(dir string) error
	show = func(dir string) error {
		entries, err := os.ReadDir(filepath.Join(root, dir))
		if err != nil {
			return err
		}
		for _, e := range entries {
			path := filepath.Join(dir, e.Name())
			bindable := e.IsDir() || e.Type().IsRegular()
			holds := slices.ContainsFunc(own, func(place string) bool { return within(place, path) })
			switch {
			case holds && e.IsDir() && !slices.Contains(own, path):
				args = append(args, "--dir", path)
				if err := show(path); err != nil {
					return err
				}
			case holds:
			case e.Type() == fs.ModeSymlink:
				target, err := os.Readlink(filepath.Join(root, path))
				if err != nil {
					return err
				}
				args = append(args, "--symlink", target, path)
			case bindable:
				args = append(args, "--ro-bind", filepath.Join(root, path), path)
			}
			if len(args) > maxRootArguments {
				return fmt.Errorf("too many entries in %s of the image, where Pawl mounts something: use an image with fewer there, or move what it mounts", dir)
			}
		}
		return nil
	}
	err = show("/")
	return args, err
}

// guest is the command line of a host's program inside a root, and its mounts. Programs from npm come with the
// packages next to them, and run by the host's Node.js; other scripts run by the root's interpreter.
func (spec Spec) guest(exe string, list []bind) (argv []string, _ []bind, err error) {
	shown := func(path string) bool {
		return slices.ContainsFunc(list, func(b bind) bool { return within(path, b.path) })
	}
	show := func(path string) (string, error) {
		real, err := filepath.EvalSymlinks(path)
		if err != nil || shown(real) {
			return real, err
		}
		from := real
		if before, _, ok := strings.Cut(real, "/node_modules/"); ok {
			from = before + "/node_modules"
		}
		to := filepath.Join(guestDir, strconv.Itoa(len(list)), filepath.Base(from))
		list = append(list, bind{to, "--ro-bind", from})
		return to + strings.TrimPrefix(real, from), runnable(spec.Root, real)
	}
	by, err := interpreter(exe)
	if err != nil {
		return nil, nil, err
	}
	if len(by) > 0 && filepath.Base(by[0]) == "node" {
		node, err := lookUp("node", spec.HostPath, os.Stat)
		if err != nil {
			return nil, nil, err
		}
		if by[0], err = show(node); err != nil {
			return nil, nil, err
		}
	} else if len(by) > 0 {
		f, err := OpenIn(spec.Root, by[0])
		if err != nil {
			return nil, nil, fmt.Errorf("%s is a script for %s, which the image lacks: use an image that has it", exe, by[0])
		}
		f.Close()
		by = nil // the kernel finds it
	}
	inside, err := show(exe)
	return slices.Concat(by, []string{inside}, spec.Argv[1:]), list, err
}

// interpreter is the program in a script's first line, with its arguments, and without env; none for other files.
func interpreter(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // as much as the kernel reads
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return nil, nil
	}
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return w == "-S" })
	}
	return words, nil
}

// runnable says why a host's program cannot run in a root: it needs the root's loader and libraries, sufficiently
// new.
func runnable(root, path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil // a script, or something for the kernel to judge
	}
	defer f.Close()
	lacks := func(what string) error {
		return fmt.Errorf("%s of the server cannot run in the image, which lacks %s: use an image with glibc that is as new as the server's (not Alpine), or install a static build on the server", path, what)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			text, _ := io.ReadAll(io.LimitReader(p.Open(), 4096))
			loader := strings.TrimRight(string(text), "\x00")
			in, err := OpenIn(root, loader)
			if err != nil {
				return lacks(loader)
			}
			in.Close()
		}
	}
	if own, _ := f.DynString(elf.DT_RUNPATH); len(own) > 0 {
		return nil // it has its own libraries
	}
	libraries, _ := f.ImportedLibraries()
	needs, _ := f.DynamicVersionNeeds()
	for _, name := range libraries {
		has, err := library(root, name)
		if err != nil {
			return lacks(name)
		}
		for _, n := range needs {
			for _, v := range n.Needs {
				if n.Name == name && !bytes.Contains(has, []byte("\x00"+v.Dep+"\x00")) {
					return lacks(v.Dep + " of " + name)
				}
			}
		}
	}
	return nil
}

// maxLibrary limits the read part of a library, in bytes; a libc has 2 MB.
const maxLibrary = 64 << 20

// library is the text of a root's library. It is not parsed, since anyone may have written it: the names of its
// versions occur in the text.
func library(root, name string) ([]byte, error) {
	triple := map[string]string{"amd64": "x86_64-linux-gnu", "arm64": "aarch64-linux-gnu"}[runtime.GOARCH]
	for _, dir := range []string{"/lib/" + triple, "/usr/lib/" + triple, "/lib64", "/usr/lib64", "/lib", "/usr/lib", "/usr/local/lib"} {
		if f, err := OpenIn(root, filepath.Join(dir, name)); err == nil {
			defer f.Close()
			return io.ReadAll(io.LimitReader(f, maxLibrary))
		}
	}
	return nil, fs.ErrNotExist
}
