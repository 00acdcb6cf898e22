package server

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// OpenSandbox opens and tests the configured sandbox. program sets up the inside of the sandbox; empty means the
// running program.
func OpenSandbox(ctx context.Context, c config.Sandbox, program string) (*sandbox.Sandbox, error) {
	mode := sandbox.Mode(c.Mode)
	if c.Mode == config.SandboxPod {
		if err := inPod(); err != nil {
			return nil, err
		}
		mode = sandbox.None // the pod replaces bubblewrap
	}
	box, err := sandbox.New(ctx, mode)
	if err != nil {
		return nil, err
	}
	box.Limit(sandbox.Limits{Memory: int64(c.Memory), CPUs: c.CPUs, PIDs: c.PIDs, Disk: int64(c.Disk)})
	if c.Bare() {
		return box, nil
	}
	own, err := ownProgram(program)
	if err != nil {
		return nil, err
	}
	if err := misplaced(own); err != nil {
		return nil, err
	}
	return box, box.UseProgram(ctx, own, c.Walled())
}

func ownProgram(given string) (string, error) {
	if given != "" {
		return given, nil
	}
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find Pawl's own program, which sets up the inside of a sandbox: %w", err)
	}
	return path, nil
}

// misplaced refuses a program in a folder that a sandbox uses for attempts.
func misplaced(own string) error {
	if own != "/pawl" && !strings.HasPrefix(own, "/pawl/work/") && !strings.HasPrefix(own, "/pawl/home/") {
		return nil
	}
	return fmt.Errorf("this program is %s, but every sandbox mounts an attempt's folders at /pawl/work and /pawl/home; move it, for example to /usr/local/bin/pawl", own)
}

// ShowInstalled lets agents read their CLIs' files outside of /usr, such as nvm's folders.
func ShowInstalled(cfg *config.Server) {
	app := cfg.GitHub.App
	secret := []string{cfg.DataDir, cfg.Database.Path, app.PrivateKeyFile, app.SigningKeyFile, cfg.Gateway.KeyFile}
	if home, err := os.UserHomeDir(); err == nil {
		secret = append(secret, home)
	}
	secret = append(secret, cfg.CredentialFiles()...)
	holdsSecret := func(dir string) bool {
		return slices.ContainsFunc(secret, func(path string) bool {
			whole, err := filepath.Abs(path)
			return path != "" && err == nil && strings.HasPrefix(whole+"/", dir+"/")
		})
	}
	for _, b := range cfg.Backends {
		if b.Kind == config.Command { // the operator lists the files that this program needs
			continue
		}
		for _, dir := range installed(b.Program()) {
			if info, err := os.Stat(dir); err == nil && info.IsDir() && !holdsSecret(dir) && !slices.Contains(cfg.Sandbox.ReadOnly, dir) {
				cfg.Sandbox.ReadOnly = append(cfg.Sandbox.ReadOnly, dir)
			}
		}
	}
}

// installed returns the folders of a CLI's package and of node outside of /usr. The sandbox itself shows the program.
func installed(program string) (dirs []string) {
	for _, name := range []string{program, "node"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || strings.HasPrefix(real, "/usr/") {
			continue
		}
		root, _, packaged := strings.Cut(real, "/node_modules/")
		if packaged {
			dirs = append(dirs, filepath.Join(root, "node_modules"))
		}
		if !strings.ContainsRune(name, '/') {
			dirs = append(dirs, filepath.Dir(path))
			if !packaged {
				dirs = append(dirs, filepath.Dir(real))
			}
		}
	}
	return dirs
}
