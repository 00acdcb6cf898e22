package sandbox

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// An agent tries to change the shared layers under its HOME and its checkout.
func TestProgramCannotWriteIntoALayer(t *testing.T) {
	s := in(t, Auto)
	dir := t.TempDir()
	if err := s.Overlays(t.Context(), dir); err != nil {
		t.Skipf("no overlays here: %v", err)
	}
	var overlays []Overlay
	for _, name := range []string{"home", "work"} {
		o := Overlay{filepath.Join(dir, "lower", name), filepath.Join(dir, name), filepath.Join(dir, "scratch", name)}
		for _, d := range []string{filepath.Join(o.Lower, "cache"), o.Upper, o.Work} {
			if err := os.MkdirAll(d, 0o755); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(o.Lower, "cache", "tool"), []byte("good"), 0o600); err != nil {
			t.Fatal(err)
		}
		overlays = append(overlays, o)
		t.Cleanup(func() { os.Chmod(filepath.Join(o.Work, "work"), 0o700) }) // lets an ordinary user delete it
	}
	attack := `cat cache/tool "$HOME/cache/tool"; echo
echo evil > cache/tool; echo evil > "$HOME/cache/tool"; echo evil > cache/more; rm -rf "$HOME/cache/tool"
mv cache elsewhere; mkdir -p cache; ln -sf /etc/passwd cache/link
mount -o remount,rw / ; mount -t overlay -o lowerdir=/,upperdir=/tmp,workdir=/run x /tmp; umount "$HOME"; umount -l .
unshare -rm sh -c 'umount -l "$HOME"; echo evil > "$HOME/cache/tool"'
for d in ` + filepath.Join(dir, "lower") + ` /proc/1/root/` + filepath.Join(dir, "lower") + ` /proc/*/cwd/cache; do echo evil > "$d/home/cache/tool"; done
echo "$(pwd) $HOME"; true`
	got := shell(t, s, Spec{
		Argv: []string{"/bin/sh", "-c", attack}, Dir: overlays[1].Upper, Home: overlays[0].Upper, DirAt: "/pawl/work", HomeAt: "/pawl/home",
		Env: []string{"PATH=/usr/sbin:/usr/bin:/bin", "HOME=/pawl/home"}, Overlays: overlays,
	})
	if !strings.HasPrefix(got, "goodgood\n") || !strings.HasSuffix(got, "/pawl/work /pawl/home") {
		t.Errorf("the program printed %q; want both layers' files and its own paths", got)
	}
	for _, o := range overlays {
		var left []string
		for _, pattern := range []string{"*", "*/*"} {
			found, _ := filepath.Glob(filepath.Join(o.Lower, pattern))
			left = append(left, found...)
		}
		text, err := os.ReadFile(filepath.Join(o.Lower, "cache", "tool"))
		if len(left) != 2 || string(text) != "good" || err != nil {
			t.Errorf("the layer contains %v, its file %q (%v); want both unchanged", left, text, err)
		}
	}
	if text, err := os.ReadFile(filepath.Join(overlays[1].Upper, "elsewhere", "more")); string(text) != "evil\n" {
		t.Errorf("the program's file contains %q (%v); want it in the program's own folder", text, err)
	}
}
