package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/fakeprovider"
)

// known are the variables in which the key of a provider and its address usually
// stand, and the provider that they are for.
func known() []struct{ protocol, key, base string } {
	return []struct{ protocol, key, base string }{
		{config.OpenAI, "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{config.Anthropic, "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		{config.Google, "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
	}
}

// standalone makes an agent CLI the only backend of a configuration without a
// file. Its key is taken from the variable in which it usually stands, and stays
// with the gateway.
func standalone(cfg *config.Server, kind, model string, lookup func(string) (string, bool)) error {
	b := config.NewBackend(kind, kind)
	b.Model = model
	var names []string
	for _, k := range known() {
		if !suits(kind, k.protocol) {
			continue
		}
		names = append(names, k.key)
		key, ok := lookup(k.key)
		if !ok || key == "" || b.Provider != "" {
			continue
		}
		base, _ := lookup(k.base)
		p := config.NewProvider(k.protocol, k.protocol)
		p.BaseURL, p.Key = cmp.Or(strings.TrimRight(base, "/"), p.BaseURL), config.NewSecret(key)
		cfg.Providers, b.Provider = []config.Provider{p}, p.Name
	}
	if b.Provider == "" {
		return fmt.Errorf("backend %s needs a key: set %s, or describe it in a configuration file (--config)", kind, strings.Join(names, " or "))
	}
	if b.Model == "" {
		b.Model = config.DefaultModel(kind, cfg.Providers[0].Protocol)
	}
	cfg.Backends = []config.Backend{b}
	cfg.Sandbox.ReadOnly = append(cfg.Sandbox.ReadOnly, installed(kind)...)
	return nil
}

// suits reports whether an agent CLI can speak a protocol.
func suits(kind, protocol string) bool {
	only := map[string]string{config.Codex: config.OpenAI, config.Claude: config.Anthropic, config.Gemini: config.Google}[kind]
	return only == "" || only == protocol
}

// practise makes an agent CLI the only backend, with a provider on loopback that
// plays a scene instead of a model.
func practise(cfg *config.Server, kind string, provider *fakeprovider.Server, key string) {
	protocol := map[string]string{config.Claude: config.Anthropic, config.Gemini: config.Google}[kind]
	p := config.NewProvider("practice", cmp.Or(protocol, config.OpenAI))
	p.BaseURL, p.Key = provider.URL(practiceScene), config.NewSecret(key)
	if p.Protocol == config.OpenAI {
		p.BaseURL += "/v1"
	}
	b := config.NewBackend(kind, kind)
	b.Model, b.Provider = practiceModel, p.Name
	cfg.Providers, cfg.Backends = []config.Provider{p}, []config.Backend{b}
	cfg.Sandbox.ReadOnly = append(cfg.Sandbox.ReadOnly, installed(kind)...)
}

// What the provider on loopback plays, and the model that it says it is.
const (
	practiceScene = "edit-success"
	practiceModel = "gpt-5"
)

// runnable says why an agent CLI cannot be run without a configuration file; nil
// when it can.
func runnable(kind string) error {
	if _, err := agent.For(kind, ""); err != nil || kind == config.Command {
		return fmt.Errorf("backend %q needs a configuration file that describes it: give it with --config", kind)
	}
	if _, err := exec.LookPath(kind); err != nil {
		a, _ := agent.For(kind, "") // it has just succeeded
		return fmt.Errorf("%w: %s", err, install(a.Version))
	}
	return nil
}

// installed are the folders that a CLI needs beside its executable: those of its
// package and of node, where they are outside of /usr.
func installed(kind string) []string {
	var dirs []string
	for _, name := range []string{kind, "node"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		real, err := filepath.EvalSymlinks(path)
		if err != nil || strings.HasPrefix(real, "/usr/") {
			continue
		}
		dir := filepath.Dir(real)
		if root, _, ok := strings.Cut(real, "/node_modules/"); ok {
			dir = filepath.Join(root, "node_modules")
		}
		for _, d := range []string{dir, filepath.Dir(path)} {
			if info, err := os.Stat(d); err == nil && info.IsDir() && d != "/" {
				dirs = append(dirs, d)
			}
		}
	}
	return dirs
}
