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

// guestDir is where a root shows host programs.
const guestDir = "/opt/pawl"

// maxRootArguments limits bubblewrap's arguments for a root; bubblewrap accepts 9,000.
const maxRootArguments = 7500

// OpenIn opens a root's file for reading. All links resolve inside the root.
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

func Has(root, path string) error {
	f, err := OpenIn(root, path)
	if err != nil {
		return fmt.Errorf("the image has no %s: use one that has it", path)
	}
	return f.Close()
}

// rootMounts returns mounts of a root's entries. Folders with Pawl's own mounts are rebuilt entry by entry, because
// bubblewrap would follow the root's links out to the host.
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
				return fmt.Errorf("too many entries in %s of the image, where Pawl mounts something: use an image with fewer entries, or move Pawl's mounts", dir)
			}
		}
		return nil
	}
	err = show("/")
	return args, err
}

// guest returns the command and mounts of a host program in a root. npm programs come with their packages and the
// host's Node.js; other scripts use the root's interpreter.
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
		by = nil // the kernel finds the interpreter
	}
	inside, err := show(exe)
	return slices.Concat(by, []string{inside}, spec.Argv[1:]), list, err
}

// interpreter returns a script's interpreter and arguments without env, or nothing.
func interpreter(path string) ([]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	line, _ := bufio.NewReader(io.LimitReader(f, 256)).ReadString('\n') // the kernel reads no more either
	words := strings.Fields(strings.TrimPrefix(line, "#!"))
	if !strings.HasPrefix(line, "#!") || len(words) == 0 {
		return nil, nil
	}
	if len(words) > 1 && filepath.Base(words[0]) == "env" {
		words = slices.DeleteFunc(words[1:], func(w string) bool { return w == "-S" })
	}
	return words, nil
}

// runnable returns an error if a root lacks a host program's loader or sufficiently new libraries.
func runnable(root, path string) error {
	f, err := elf.Open(path)
	if err != nil {
		return nil // a script or another format for the kernel
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
		return nil // the program names its own library folders
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

// maxLibrary limits the bytes read of a library; a libc has 2 MB.
const maxLibrary = 64 << 20

// library returns a root's library as text. It searches for version names instead of parsing untrusted files.
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
