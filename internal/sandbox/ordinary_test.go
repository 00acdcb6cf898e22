package sandbox

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/needs"
)

// If the tests run as root, this test runs the others again as the user nobody.
func TestSandboxWorksForOrdinaryUsers(t *testing.T) {
	needs.All(t, "it runs all tests of the package once more")
	if os.Geteuid() != 0 {
		t.Skip("the tests run as an ordinary user already")
	}
	const nobody = 65534
	dir, err := os.MkdirTemp("/tmp", "pawl-test")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chown(dir, nobody, nobody); err != nil {
		t.Fatal(err)
	}
	self, err := os.Open("/proc/self/exe")
	if err != nil {
		t.Fatal(err)
	}
	defer self.Close()
	exe, err := os.OpenFile(filepath.Join(dir, "test"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(exe, self); err != nil {
		t.Fatal(err)
	}
	if err := exe.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe.Name(), "-test.v")
	cmd.Dir = dir
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "TMPDIR=" + dir, "HOME=" + dir, "PAWL_TEST_ALL=1"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	} else {
		t.Logf("%s", out)
	}
}
