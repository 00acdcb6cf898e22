package sandbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
)

// mountAll mounts overlays and executes the command.
const mountAll = `PATH=/usr/sbin:/usr/bin:/sbin:/bin
n=$1; shift
while [ "$n" -gt 0 ]; do
	mount -t overlay -o "$1" pawl "$2" || exit 1
	shift 2; n=$((n-1))
done
exec "$@"`

// overlaid returns a command that mounts overlays in its own mount namespace and, unless Pawl is root, user
// namespace.
func overlaid(ctx context.Context, argv []string, overlays []Overlay) *exec.Cmd {
	options, attr := ",index=off,metacopy=off", &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	if uid := os.Geteuid(); uid != 0 {
		options += ",userxattr"
		attr.Cloneflags = syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{HostID: uid, Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{HostID: os.Getegid(), Size: 1}}
	}
	args := []string{"-c", mountAll, "sh", strconv.Itoa(len(overlays))}
	for _, o := range overlays {
		args = append(args, "lowerdir="+o.Lower+",upperdir="+o.Upper+",workdir="+o.Work+options, o.Upper)
	}
	cmd := exec.CommandContext(ctx, "/bin/sh", append(args, argv...)...)
	cmd.SysProcAttr = attr
	return cmd
}

// Overlays returns an error if programs cannot have overlays in dir. That depends on the kernel, the user's rights
// and the file system.
func (s *Sandbox) Overlays(ctx context.Context, dir string) error {
	if s.mode == None {
		return errors.New("there is no sandbox")
	}
	dir, err := os.MkdirTemp(dir, "overlay-")
	if err != nil {
		return err
	}
	o := Overlay{filepath.Join(dir, "lower"), filepath.Join(dir, "upper"), filepath.Join(dir, "work")}
	defer func() {
		_ = os.Chmod(filepath.Join(o.Work, "work"), 0o700) // overlayfs makes this folder unreadable; it may be missing
		os.RemoveAll(dir)
	}()
	for _, d := range []string{o.Lower, o.Upper, o.Work} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return err
		}
	}
	file := filepath.Join(o.Lower, "file")
	if err := os.WriteFile(file, []byte("lower\n"), 0o600); err != nil {
		return err
	}
	output, exit, err := s.once(ctx, Spec{
		Argv: []string{"/bin/sh", "-c", `read -r was < file && [ "$was" = lower ] && echo upper > file`}, Dir: o.Upper, Home: o.Upper, Overlays: []Overlay{o},
	})
	if err != nil || exit.Code != 0 {
		return fmt.Errorf("an overlay could not be mounted (status %d): %s", exit.Code, output)
	}
	for path, want := range map[string]string{file: "lower\n", filepath.Join(o.Upper, "file"): "upper\n"} {
		if got, err := os.ReadFile(path); err != nil || string(got) != want {
			return fmt.Errorf("an overlay does not keep its layers apart: %s holds %q", filepath.Base(filepath.Dir(path)), got)
		}
	}
	return nil
}
