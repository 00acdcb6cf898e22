package config

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Network lists the hosts that programs may reach if Sandbox.Walled is true. Agents always reach their model.
type Network struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
	Judge  []policy.HostRule `yaml:"judge"`
	// Private lists non-public networks that allowed names may resolve to.
	Private  []netip.Prefix `yaml:"private"`
	Download Bytes          `yaml:"download"` // per program; zero means no limit
}

// RepoNetwork narrows the server's lists. An omitted list leaves the server's list unchanged.
type RepoNetwork struct {
	Setup  []policy.HostRule `yaml:"setup"`
	Agent  []policy.HostRule `yaml:"agent"`
	Verify []policy.HostRule `yaml:"verify"`
}

// Network modes.
const (
	NetworkWalled = "walled" // a separate network that reaches only allowed hosts
	NetworkOpen   = "open"   // the machine's network
)

const maxHosts = 100

// Unwalled returns the setting that gives programs the machine's network, or empty. Without bubblewrap, programs always
// use that network.
func (s Sandbox) Unwalled() string {
	switch {
	case s.Bare():
		return "sandbox.mode: " + s.Mode
	case s.Network == NetworkOpen:
		return "sandbox.network: " + NetworkOpen
	}
	return ""
}

func (s Sandbox) Walled() bool { return s.Unwalled() == "" }

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

// Hosts returns the hosts that a CLI's own login needs. With a provider there are none, because Pawl makes the calls.
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
