package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Network lists the hosts that programs may reach besides their model. It applies where Sandbox.Walled is true.
type Network struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
	Judge  []policy.HostRule `yaml:"judge"`
	// Private are non-public networks that names on these lists may resolve to.
	Private  []netip.Prefix `yaml:"private"`
	Download Bytes          `yaml:"download"` // per program; zero is no limit
}

// RepoNetwork narrows the server's lists. A list that is left out stays as on the server.
type RepoNetwork struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
}

// The networks of programs.
const (
	NetworkWalled = "walled" // their own, with the hosts of Network
	NetworkOpen   = "open"   // this machine's
)

// maxHosts bounds each list.
const maxHosts = 100

// Unwalled is the setting that lets programs share this machine's network; empty where they have their own. Without a
// sandbox they always share it.
func (s Sandbox) Unwalled() string {
	switch {
	case s.Mode == SandboxNone:
		return "sandbox.mode: " + SandboxNone
	case s.Network == NetworkOpen:
		return "sandbox.network: " + NetworkOpen
	}
	return ""
}

func (s Sandbox) Walled() bool { return s.Unwalled() == "" }

// narrow is the server's network, narrowed by a repository.
func (n Network) narrow(s *source, r RepoNetwork) Network {
	for _, list := range []struct {
		key    string
		server *[]policy.HostRule
		own    []policy.HostRule
	}{{"network.setup", &n.Setup, r.Setup}, {"network.agent", &n.Agent, r.Agent}, {"network.verify", &n.Verify, r.Verify}} {
		if !s.set(list.key) {
			continue
		}
		for i, rule := range list.own {
			s.addIf(
				!rule.In(*list.server),
				fmt.Sprintf("%s[%d]", list.key, i),
				"%s is not allowed by this server; remove it, or ask the operator to add it to %s",
				rule,
				list.key,
			)
		}
		*list.server = slices.DeleteFunc(slices.Clone(list.own), func(rule policy.HostRule) bool { return !rule.In(*list.server) })
	}
	return n
}

func validateHosts(s *source, key string, list []policy.HostRule) {
	s.addIf(
		len(list) > maxHosts,
		key,
		"has %d hosts; use at most %d, or *.SUFFIX for many hosts of one owner",
		len(list),
		maxHosts,
	)
}

// Hosts are the hosts that a CLI with its own login needs. A backend with a provider needs none, because only Pawl
// calls the provider.
func (b Backend) Hosts() (list []policy.HostRule) {
	cli := CLIOf(b.Kind)
	names := slices.Clone(cli.Hosts)
	provider, _, _ := strings.Cut(b.Model, "/")
	if api := cli.ModelHosts[provider]; api != "" {
		names = append(names, api)
	}
	if b.Provider != "" {
		return nil
	}
	for _, name := range names {
		list = append(list, policy.HostRule{Name: name, Port: "443"})
	}
	return list
}
