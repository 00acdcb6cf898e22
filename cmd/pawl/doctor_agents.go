package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// providers asks each provider for an answer of any status, without a key.
func (d *doctor) providers(ctx context.Context) {
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	for _, p := range d.cfg.Providers {
		check := "provider " + p.Name
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.BaseURL, nil)
		if d.failed(check, err, "correct base_url") {
			continue
		}
		resp, err := client.Do(req)
		if d.failed(check, err, "look at base_url and at this machine's way to the network") {
			continue
		}
		resp.Body.Close()
		if p.Key.Empty() {
			d.add(check, checkWarn, p.BaseURL+" answers; no key is configured", "leave it so only where the provider asks for none")
			continue
		}
		d.add(check, checkOK, p.BaseURL+" answers", "")
	}
}

func (d *doctor) agents(ctx context.Context) {
	for _, b := range d.cfg.Backends {
		check := "backend " + b.Name
		adapter, err := clis.For(b.Kind, b.Stream)
		if d.failed(check, err, "correct its kind and stream") {
			continue
		}
		exe, err := exec.LookPath(program(b))
		if d.failed(check, err, install(adapter.Version)) {
			continue
		}
		d.version(ctx, check, exe, b, adapter.Version)
		d.startable(check, b, adapter)
		d.access(check, b)
	}
}

// startable asks the adapter for an attempt's command line: it knows which efforts and models the CLI takes.
func (d *doctor) startable(check string, b config.Backend, a agent.Adapter) {
	p, _ := d.cfg.Provider(b.Provider)
	var endpoint agent.Endpoint
	if b.Provider != "" {
		endpoint = agent.Endpoint{Protocol: p.Protocol, URL: "http://127.0.0.1:1", Token: "none"}
	}
	for _, effort := range []string{b.Effort, b.EscalatedEffort} {
		_, err := a.Command(agent.Request{Prompt: "none", Dir: "/nonexistent", Home: "/nonexistent", Model: b.Model, Effort: effort, Argv: b.Argv, Endpoint: endpoint})
		if err != nil {
			d.add(check, checkFail, "cannot be started as it is configured: "+err.Error(), "correct the backend in the configuration")
			return
		}
	}
}

func program(b config.Backend) string {
	if len(b.Argv) > 0 {
		return b.Argv[0]
	}
	return b.Kind
}

func install(v agent.Version) string {
	if v.Package == "" {
		return "name the program in argv by its full path"
	}
	return fmt.Sprintf("npm install --global %s@%s, or name the program in argv", v.Package, v.Checked)
}

// version asks a CLI for its version, without anything secret and without standard input.
func (d *doctor) version(ctx context.Context, check, exe string, b config.Backend, v agent.Version) {
	if v.Checked == "" {
		d.add(check, checkOK, exe+" is there", "")
		return
	}
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	s, err := askVersion(ctx, exe, b, v)
	if err != nil {
		d.add(check, checkFail, fmt.Sprintf("%s --version: %v", exe, err), install(v))
		return
	}
	switch s.Kind {
	case agent.VersionChecked:
		d.add(check, checkOK, s.Text, "")
	case agent.VersionOlder:
		d.add(check, checkFail, s.Text, install(v))
	default:
		d.add(check, checkWarn, s.Text, "watch its first attempts; pawl inspect shows how a transcript is read")
	}
}

func askVersion(ctx context.Context, exe string, b config.Backend, v agent.Version) (agent.VersionFinding, error) {
	home, err := os.MkdirTemp("", "pawl-version-")
	if err != nil {
		return agent.VersionFinding{}, err
	}
	defer os.RemoveAll(home)
	args := []string{"--version"}
	if len(b.Argv) > 1 {
		args = slices.Concat(b.Argv[1:], args)
	}
	cmd := exec.CommandContext(ctx, exe, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"}
	cmd.Dir = home
	cmd.WaitDelay = time.Second // for a child of it that holds the pipe open
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok && len(exit.Stderr) > 0 {
			return agent.VersionFinding{}, fmt.Errorf("%w: %.200s", err, strings.TrimSpace(string(exit.Stderr)))
		}
		return agent.VersionFinding{}, err
	}
	return v.Judge(string(out)), nil
}

func (d *doctor) access(check string, b config.Backend) {
	switch {
	case b.CredentialFile != "":
		if _, err := os.Stat(b.CredentialFile); err != nil {
			d.add(check, checkFail, fmt.Sprintf("credential_file: %v", err), "sign the CLI in as this user, or correct the path")
			return
		}
		d.add(check, checkWarn, "the agent can read the login in "+b.CredentialFile+" and could pass it on", "use a provider instead, whose key stays outside")
	case b.Provider != "":
		d.add(check, checkOK, "reaches its model through the gateway; the key of provider "+b.Provider+" stays outside", "")
	case len(b.Env) > 0:
		d.add(check, checkWarn, "the agent gets "+strings.Join(b.Env, ", ")+" and could pass them on", "use a provider instead, whose key stays outside")
	}
}
