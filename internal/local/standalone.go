package local

import (
	"cmp"
	"fmt"
	"os/exec"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent/clis"
)

// Standalone makes an agent CLI the only backend. The key comes from the usual variable, and only the gateway has it.
func Standalone(cfg *config.Server, kind, model string, lookup func(string) (string, bool)) error {
	adapter, err := clis.For(kind, "")
	if err != nil || kind == config.Command {
		return fmt.Errorf("backend %q needs a configuration file that describes it: give it with --config", kind)
	}
	if _, err := exec.LookPath(kind); err != nil {
		return fmt.Errorf("the agent CLI %s is not in PATH: install it with %s, or choose another (%s)",
			kind, adapter.Version.Install(), strings.Join(config.CLIs(), ", "))
	}
	b := config.NewBackend(kind, kind)
	b.Model = model
	var names []string
	for _, v := range config.Vendors() {
		if v.Protocol != cmp.Or(config.ProtocolOf(kind), v.Protocol) {
			continue
		}
		names = append(names, v.KeyVariable)
		key, _ := lookup(v.KeyVariable)
		if key == "" || b.Provider != "" {
			continue
		}
		base, _ := lookup(v.URLVariable)
		p := config.NewProvider(v.Protocol, v.Protocol)
		p.BaseURL, p.Key = cmp.Or(strings.TrimRight(base, "/"), p.BaseURL), config.SecretOf(v.KeyVariable, key)
		cfg.Providers, b.Provider = []config.Provider{p}, p.Name
	}
	if b.Provider == "" {
		return fmt.Errorf("backend %s needs a key: set %s, or describe it in a configuration file (--config)", kind, strings.Join(names, " or "))
	}
	b.Model = cmp.Or(b.Model, config.DefaultModel(kind, cfg.Providers[0].Protocol))
	cfg.Backends = []config.Backend{b}
	return nil
}
