package doctor

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

// providers lists each provider's models to check its key at no cost.
func (e *exam) providers(ctx context.Context) (all []Finding) {
	for _, p := range e.cfg.Providers {
		names, err := gateway.List(ctx, e.transport, p)
		found := provider(p, err)
		found[0].Check = "provider " + p.Name
		all = append(all, found...)
		all = append(all, e.unlisted(p, names)...)
	}
	return all
}

func provider(p config.Provider, err error) []Finding {
	switch {
	case errors.Is(err, gateway.ErrKey) && p.Relay.URL != "":
		return failed(p.Endpoint()+": "+err.Error(), "correct "+p.KeySource())
	case errors.Is(err, gateway.ErrKey):
		return failed(
			p.Endpoint()+": "+err.Error(),
			"create a new key there for "+p.KeySource()+", or correct base_url; Pawl reads variables only at its start",
		)
	case errors.Is(err, gateway.ErrNoList):
		return warning(
			p.Endpoint()+" answers but lists no models, so the key could not be checked",
			"nothing to do if this provider has no list of models",
		)
	case err != nil:
		return failed(err.Error(), "check the URL and this machine's network")
	case p.Credential().Empty():
		return warning(
			p.Endpoint()+" answers; no key is configured",
			"set key, unless the provider needs none",
		)
	}
	return ok(p.Endpoint() + " answers and accepts the key")
}

const shownModels = 8

// unlisted warns of backends whose model is not listed. The provider may still accept an alias.
func (e *exam) unlisted(p config.Provider, names []string) (all []Finding) {
	if len(names) == 0 {
		return nil
	}
	for _, b := range e.cfg.Backends {
		uses := slices.ContainsFunc(e.cfg.EachAccount(b), func(b config.Backend) bool { return b.Provider == p.Name })
		if !uses || b.Model == "" {
			continue
		}
		known := func(name string) bool { return config.IsModel(name, b.Model) || name == b.Model }
		if slices.ContainsFunc(names, known) {
			continue
		}
		shown := strings.Join(names[:min(len(names), shownModels)], ", ")
		all = append(all, Finding{
			Check: "backend " + b.Name,
			State: Warning,
			Text:  fmt.Sprintf("provider %s does not list the model %s", p.Name, b.Model),
			Hint:  "correct model, unless it is an alias of one of these: " + shown,
		})
	}
	return all
}

// backends runs all CLIs' --version concurrently.
func (e *exam) backends(ctx context.Context) []Finding {
	found := make([][]Finding, len(e.cfg.Backends))
	var asking sync.WaitGroup
	for i, b := range e.cfg.Backends {
		asking.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, checkTime)
			defer cancel()
			found[i] = e.backend(ctx, b)
			for j := range found[i] {
				found[i][j].Check = "backend " + b.Name
			}
		})
	}
	asking.Wait()
	return slices.Concat(found...)
}

func (e *exam) backend(ctx context.Context, b config.Backend) []Finding {
	adapter, err := clis.For(b.Kind, b.Stream)
	if err != nil {
		return failed(err.Error(), "correct its kind and stream")
	}
	exe, err := exec.LookPath(b.Program())
	if err != nil {
		return failed(err.Error(), adapter.Version.Hint())
	}
	found := e.version(ctx, exe, b, adapter.Version)
	for _, b := range e.cfg.EachAccount(b) {
		found = append(found, e.startable(b, adapter)...)
		found = append(found, access(b)...)
	}
	return found
}

// startable checks efforts and models: it asks the adapter for a command line.
func (e *exam) startable(b config.Backend, a agent.Adapter) []Finding {
	p, _ := e.cfg.Provider(b.Provider)
	r := agent.Request{
		Prompt: "none",
		Dir:    "/nonexistent",
		Home:   "/nonexistent",
		Model:  b.Model,
		Argv:   b.Argv,
	}
	if b.Provider != "" {
		r.Endpoint = agent.Endpoint{Protocol: p.Protocol, URL: "http://127.0.0.1:1", Token: "none"}
	}
	for _, r.Effort = range []string{b.Effort, b.EscalatedEffort} {
		if _, err := a.Command(r); err != nil {
			return failed("cannot be started with this configuration: "+err.Error(), "correct the backend in the configuration")
		}
	}
	return nil
}

// version runs a CLI's --version in an attempt's sandbox, without secrets.
func (e *exam) version(ctx context.Context, exe string, b config.Backend, v agent.Version) []Finding {
	if v.Checked == "" {
		return ok(exe + " exists")
	}
	if e.box == nil {
		return nil // another finding reports a missing sandbox
	}
	output, err := e.ask(ctx, b)
	if errors.Is(err, context.DeadlineExceeded) {
		return warning(
			exe+" --version did not end in time",
			"run it by hand; an attempt whose agent hangs ends after startup_timeout",
		)
	}
	if err != nil {
		return failed(
			fmt.Sprintf("%s --version, run in the sandbox of an attempt: %v", exe, err),
			v.Hint()+"; list the files that it needs outside /usr in sandbox.read_only",
		)
	}
	order, judged := v.Judge(output)
	switch {
	case order == 0:
		return ok(judged + "; it starts in the sandbox of an attempt")
	case order < 0:
		return failed(judged, v.Hint())
	}
	return warning(judged, "watch its first attempts; pawl inspect shows how Pawl reads a transcript")
}

// maxVersion limits the output of --version in bytes.
const maxVersion = 64 << 10

func (e *exam) ask(ctx context.Context, b config.Backend) (said string, err error) {
	home, err := os.MkdirTemp("", "pawl-version-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	args := []string{b.Program()}
	if len(b.Argv) > 1 {
		args = append(args, b.Argv[1:]...)
	}
	p, err := e.box.Start(ctx, sandbox.Spec{
		Argv:     append(args, "--version"),
		Dir:      home,
		Home:     home,
		ReadOnly: e.cfg.Sandbox.ReadOnly,
		Env:      []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "LANG=C.UTF-8", "TERM=dumb"},
	})
	if err != nil {
		return "", err
	}
	var complaint []byte
	var reading sync.WaitGroup
	reading.Go(func() { complaint = head(p.Stderr()) })
	out := head(p.Stdout())
	reading.Wait()
	exit, err := p.Wait()
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil && exit.Code != 0 {
		err = fmt.Errorf("exit status %d: %.200s", exit.Code, strings.TrimSpace(string(complaint)))
	}
	return string(out), err
}

// head reads everything and returns the beginning. A program whose output nobody reads would hang.
func head(r io.Reader) []byte {
	kept, _ := io.ReadAll(io.LimitReader(r, maxVersion)) // the part before an error
	_, _ = io.Copy(io.Discard, r)
	return kept
}

func access(b config.Backend) []Finding {
	const safer = "use a provider instead; the agent does not get its key"
	switch {
	case b.CredentialFile != "":
		if _, err := os.Stat(b.CredentialFile); err != nil {
			return failed(fmt.Sprintf("credential_file: %v", err), "sign the CLI in as this user, or correct the path")
		}
		return warning("the agent can read the login in "+b.CredentialFile+" and could leak it", safer)
	case b.Provider != "":
		return ok("reaches its model through the gateway and does not get the key of provider " + b.Provider)
	case len(b.Env) > 0:
		return warning("the agent gets "+strings.Join(b.Env, ", ")+" and could leak them", safer)
	case b.Kind == config.Command, len(b.Argv) > 0:
		return ok("gets no login and no key from Pawl; its program must need none or bring its own")
	}
	return failed(
		"has no way to sign in: no provider, no credential_file and no env",
		"name a provider; the agent does not get its key",
	)
}
