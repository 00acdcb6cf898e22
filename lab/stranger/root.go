package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// The root's folders in addition to an empty home.
const (
	sources = "/sources" // the repository to clone
	modules = "/modules" // a module proxy
	tools   = "/tools"   // the installed agent
	given   = "/pawl"    // the given program
	home    = "/home/stranger"
)

// script replaces Codex if testdata/clis is not installed.
const script = `#!/bin/sh
[ "$1" = --version ] && { echo codex-cli 0.169.0; exit; }
cat >/dev/null
echo 'Hello, world' >hello.txt
echo '{"type":"thread.started","thread_id":"00000000-0000-7000-8000-000000000001"}'
echo '{"type":"turn.started"}'
echo '{"type":"item.completed","item":{"id":"item_2","type":"agent_message","text":"There is a greeting now."}}'
echo '{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}'
`

// enter runs this program again in an empty root. The root has the host's complete /proc: otherwise the kernel would not let
// sandboxes in the root mount a /proc.
func enter(folder, program string) error {
	own, err := os.Executable()
	if err != nil {
		return err
	}
	repo, err := filepath.Abs("..") // make stranger runs in lab/
	if err != nil {
		return err
	}
	cache, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		return fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	// The folder may be a link to another clone.
	installed, err := filepath.EvalSymlinks(filepath.Join(repo, "testdata/clis/node_modules"))
	agent, path := filepath.Dir(installed), tools+"/node_modules/.bin"
	if err == nil {
		_, err = os.Stat(filepath.Join(installed, ".bin/codex"))
	}
	if err != nil {
		fmt.Println("testdata/clis has no Codex (.ci/setup installs it); a script replaces it.")
		agent, path = filepath.Join(folder, "bin"), tools
		if err := os.Mkdir(agent, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(agent, "codex"), []byte(script), 0o755); err != nil {
			return err
		}
	}
	args := []string{
		"--unshare-net", "--unshare-ipc", "--die-with-parent", "--clearenv",
		"--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--symlink", "usr/sbin", "/sbin",
		"--bind", "/proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", folder, "/home", "--dir", "/etc",
		"--ro-bind", repo, sources, "--ro-bind", filepath.Join(strings.TrimSpace(string(cache)), "cache/download"), modules,
		"--ro-bind", agent, tools, "--ro-bind", own, "/stranger",
	}
	for _, file := range []string{"/etc/passwd", "/etc/group", "/etc/ld.so.cache", "/etc/alternatives"} {
		args = append(args, "--ro-bind-try", file, file)
	}
	if program != "" {
		if program, err = filepath.Abs(program); err != nil {
			return err
		}
		args = append(args, "--ro-bind", program, given)
	}
	for name, value := range map[string]string{
		"HOME": home, "PATH": path + ":/usr/local/go/bin:/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
		"GOPROXY": "file://" + modules, "GOSUMDB": "off", "GOTOOLCHAIN": "local", "GOFLAGS": "-modcacherw",
	} {
		args = append(args, "--setenv", name, value)
	}
	cmd := exec.Command("bwrap", append(args, "--", "/stranger", inside)...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	return cmd.Run()
}
