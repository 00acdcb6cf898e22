package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// process is a server that Pawl is compared with, in a process of its own.
type process struct {
	addr string
	cmd  *exec.Cmd
}

// rival is how to start one on an address.
type rival struct {
	name    string
	command func(ctx context.Context, addr string) *exec.Cmd
}

// start runs a rival until it takes connections.
func (r rival) start(ctx context.Context, log string) (p *process, err error) {
	addr, err := freeAddress()
	if err != nil {
		return nil, err
	}
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	p = &process{addr: addr, cmd: r.command(ctx, addr)}
	p.cmd.Stdout, p.cmd.Stderr = out, out
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", r.name, err)
	}
	for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		resp, err := http.Get("http://" + addr + "/readyz")
		if err == nil {
			return p, resp.Body.Close()
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			said, _ := os.ReadFile(log)
			return nil, errors.Join(fmt.Errorf("%s does not answer: %w\n%s", r.name, err, said), p.stop())
		}
	}
}

// stop ends it. It holds nothing that is worth a farewell.
func (p *process) stop() error {
	if err := p.cmd.Process.Signal(syscall.SIGKILL); err != nil {
		return err
	}
	_ = p.cmd.Wait() // says that it was killed
	return nil
}

// dispatcher builds the reference server: go-githubapp with its in-memory
// scheduler.
func dispatcher(ctx context.Context, dir string) (bin string, err error) {
	bin = filepath.Join(dir, "dispatcher")
	return bin, buildGo(ctx, bin, "github.com/pawlbot/pawl/testdata/bench/dispatcher")
}

// probot installs Probot as its lock file says, once, and returns how to start
// it. why says what is missing where it cannot be.
func probot(ctx context.Context, key string) (r rival, why string, err error) {
	root, err := moduleRoot(ctx)
	if err != nil {
		return r, "", err
	}
	node, err := findNode(root)
	if err != nil {
		return r, err.Error(), nil
	}
	dir := filepath.Join(root, "testdata", "bench", "probot")
	if _, err := os.Stat(filepath.Join(dir, "node_modules", "probot")); err != nil {
		npm := exec.CommandContext(ctx, "npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund")
		npm.Dir = dir
		if said, err := npm.CombinedOutput(); err != nil {
			return r, fmt.Sprintf("npm ci in %s: %v: %.300s", dir, err, said), nil
		}
	}
	return rival{"Probot", func(ctx context.Context, addr string) *exec.Cmd {
		host, port, _ := net.SplitHostPort(addr)
		cmd := exec.CommandContext(ctx, node, filepath.Join(dir, "server.js"), host, port, key, secret)
		cmd.Env = append(os.Environ(), "NODE_ENV=production")
		return cmd
	}}, "", nil
}

// findNode prefers the Node that the tests' setup installs, since Probot needs
// version 22.
func findNode(root string) (string, error) {
	own := filepath.Join(root, "testdata", "clis", "node_modules", ".bin", "node")
	if _, err := os.Stat(own); err == nil {
		return own, nil
	}
	node, err := exec.LookPath("node")
	if err != nil {
		return "", errors.New("there is no Node; .ci/setup installs it")
	}
	return node, nil
}
