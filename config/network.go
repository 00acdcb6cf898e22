package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Network lists what programs may reach beside their models, which agents reach through Pawl. It holds where
// Sandbox.Walled does.
type Network struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
	Judge  []policy.HostRule `yaml:"judge"`
	// Private are networks, as prefixes, that names on these lists may lead to although they are not public.
	Private []netip.Prefix `yaml:"private"`
	// Download bounds what one agent, setup, verify command or judge gets from these hosts. Zero is no limit.
	Download Bytes `yaml:"download"`
}

// RepoNetwork narrows the server's lists; one that is left out is as the server has it.
type RepoNetwork struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
}

// What the network of programs is.
const (
	NetworkWalled = "walled" // their own, with the lists of Network as the only way out
	NetworkOpen   = "open"   // this machine's
)

// maxHosts bounds each list.
const maxHosts = 100

// Unwalled is the setting by which programs share this machine's network; empty where they have networks of their own,
// which they cannot without a sandbox.
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

// narrow is the server's network with what a repository leaves of it.
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
		"has %d hosts; use at most %d, or *.SUFFIX for many of one owner",
		len(list),
		maxHosts,
	)
}

// Hosts are what the CLI of a backend that signs in by itself needs to reach; none for one with a provider, whose
// host only Pawl reaches, and none for a command.
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
