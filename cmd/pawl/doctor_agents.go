package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// providers asks each provider for its models, which shows that the key works and costs nothing.
func (d *doctor) providers(ctx context.Context) {
	for _, p := range d.cfg.Providers {
		check := "provider " + p.Name
		names, err := gateway.List(ctx, d.transport, p)
		switch {
		case errors.Is(err, gateway.ErrKey):
			d.add(check, checkFail, p.BaseURL+": "+err.Error(), "make a new key there and set it, or correct base_url")
		case errors.Is(err, gateway.ErrNoList):
			d.add(check, checkWarn, p.BaseURL+" answers and lists no models, so whether it takes the key is not known", "leave it so where that provider has no list")
		case err != nil:
			d.add(check, checkFail, err.Error(), "look at base_url and at this machine's way to the network")
		case p.Key.Empty():
			d.add(check, checkWarn, p.BaseURL+" answers; no key is configured", "leave it so only where the provider asks for none")
		default:
			d.add(check, checkOK, p.BaseURL+" answers and takes the key", "")
		}
		d.listed(p, names)
	}
}

// listed warns of backends whose model the provider does not name. It may take the name all the same: an alias, or
// one that a router makes another of.
func (d *doctor) listed(p config.Provider, names []string) {
	for _, b := range d.cfg.Backends {
		known := slices.ContainsFunc(names, func(name string) bool { return config.IsModel(name, b.Model) || name == b.Model })
		if b.Provider == p.Name && b.Model != "" && len(names) > 0 && !known {
			d.add("backend "+b.Name, checkWarn, fmt.Sprintf("provider %s does not list the model %s", p.Name, b.Model), "correct model, unless it is another name of one: "+strings.Join(names[:min(len(names), shownModels)], ", "))
		}
	}
}

// shownModels is how many names of a provider's models are shown.
const shownModels = 8

// agents asks the CLIs for their version as an attempt would start them, side by side.
func (d *doctor) agents(ctx context.Context) {
	all := make([]*doctor, len(d.cfg.Backends))
	var asking sync.WaitGroup
	for i, b := range d.cfg.Backends {
		all[i] = &doctor{cfg: d.cfg, box: d.box}
		asking.Go(func() { all[i].bounded(ctx, func(ctx context.Context) { all[i].agent(ctx, b) }) })
	}
	asking.Wait()
	for _, one := range all {
		d.found = append(d.found, one.found...)
	}
}

func (d *doctor) agent(ctx context.Context, b config.Backend) {
	check := "backend " + b.Name
	adapter, err := clis.For(b.Kind, b.Stream)
	if d.failed(check, err, "correct its kind and stream") {
		return
	}
	exe, err := exec.LookPath(b.Program())
	if d.failed(check, err, install(adapter.Version)) {
		return
	}
	d.version(ctx, check, exe, b, adapter.Version)
	d.startable(check, b, adapter)
	d.access(check, b)
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

func install(v agent.Version) string {
	if v.Package == "" {
		return "name the program in argv by its full path"
	}
	return v.Install() + ", or name the program in argv"
}

// version asks a CLI for its version, as an attempt starts it, without anything secret and without standard input.
func (d *doctor) version(ctx context.Context, check, exe string, b config.Backend, v agent.Version) {
	if v.Checked == "" {
		d.add(check, checkOK, exe+" is there", "")
		return
	}
	if d.box == nil {
		return // without a sandbox nothing starts, which another line says
	}
	said, err := d.ask(ctx, b)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		d.add(check, checkWarn, fmt.Sprintf("%s --version does not end", exe), "try it by hand: an agent that hangs ends its attempt at startup_timeout")
		return
	case err != nil:
		d.add(check, checkFail, fmt.Sprintf("%s --version, as an attempt starts it: %v", exe, err), install(v)+"; sandbox.read_only shows the sandbox what stands outside of /usr")
		return
	}
	switch order, judged := v.Judge(said); {
	case order == 0:
		d.add(check, checkOK, judged+", as an attempt starts it", "")
	case order < 0:
		d.add(check, checkFail, judged, install(v))
	default:
		d.add(check, checkWarn, judged, "watch its first attempts; pawl inspect shows how a transcript is read")
	}
}

// maxVersion bounds what is read of a CLI that tells its version, in bytes.
const maxVersion = 64 << 10

// ask starts a backend's program as an attempt does, with what an agent may see, to tell its version.
func (d *doctor) ask(ctx context.Context, b config.Backend) (said string, err error) {
	home, err := os.MkdirTemp("", "pawl-version-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	args := []string{b.Program()}
	if len(b.Argv) > 1 {
		args = append(args, b.Argv[1:]...)
	}
	p, err := d.box.Start(ctx, sandbox.Spec{
		Argv: append(args, "--version"), Dir: home, Home: home, ReadOnly: d.cfg.Sandbox.ReadOnly,
		Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"},
	})
	if err != nil {
		return "", err
	}
	var complaint []byte
	var reading sync.WaitGroup
	reading.Go(func() {
		complaint, _ = io.ReadAll(io.LimitReader(p.Stderr(), maxVersion))
		_, _ = io.Copy(io.Discard, p.Stderr())
	})
	out, _ := io.ReadAll(io.LimitReader(p.Stdout(), maxVersion))
	_, _ = io.Copy(io.Discard, p.Stdout())
	reading.Wait()
	exit, err := p.Wait()
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case err == nil && exit.Code != 0:
		err = fmt.Errorf("exit status %d: %.200s", exit.Code, strings.TrimSpace(string(complaint)))
	}
	return string(out), err
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
	case b.Kind == config.Command, len(b.Argv) > 0:
		d.add(check, checkOK, "gets no login and no key; its program must do without, or bring its own", "")
	default:
		d.add(check, checkFail, "has no way to sign in: no provider, no credential_file and no env", "name a provider, whose key stays outside")
	}
}
