package config

import (
	"strings"
	"testing"
)

func TestARepositoryOnlyNarrowsTheNetwork(t *testing.T) {
	c := server("codex")
	s := newSource("pawl.yml", nil)
	if !s.read([]byte("network: {setup: [registry.npmjs.org], agent: ['*.example.org', 'a.org:80'], verify: [b.org]}\n"), &c) {
		t.Fatal(s.sorted())
	}
	for text, want := range map[string]string{
		"": "[registry.npmjs.org:443] [*.example.org:443 a.org:80] [b.org:443]", "network: {agent: []}": "[registry.npmjs.org:443] [] [b.org:443]",
		"network: {agent: [x.example.org, 'a.org:80'], verify: []}": "[registry.npmjs.org:443] [x.example.org:443 a.org:80] []",
		"network: {agent: [example.org]}":                           "example.org:443 is not allowed by this server; remove it, or ask the operator to add it to network.agent",
		"network: {agent: [a.org]}":                                 "a.org:443 is not allowed by this server", "network: {verify: ['*.b.org']}": "*.b.org:443 is not allowed by this server",
		"network: {setup: ['127.0.0.1']}": "is an address; only names are let through", "network: {judge: []}": "judge: is not a known key", "network: {private: []}": "private: is not a known key",
	} {
		r, problems := ParseRepo(RepoFile, []byte(text))
		if len(problems) == 0 {
			var e Effective
			if e, problems = c.Narrow(r); len(problems) == 0 {
				var got []string
				for _, list := range [][]string{words(e.Network.Setup), words(e.Network.Agent), words(e.Network.Verify)} {
					got = append(got, "["+strings.Join(list, " ")+"]")
				}
				if strings.Join(got, " ") != want {
					t.Errorf("%s: %v, want %s", text, got, want)
				}
				continue
			}
		}
		if !strings.Contains(Problems(problems).Error(), want) {
			t.Errorf("%s: %v, want %q", text, Problems(problems), want)
		}
	}
}

func TestAgentsWithTheirOwnLoginReachTheirProvider(t *testing.T) {
	for _, kind := range CLIs() {
		b := NewBackend("x", kind)
		if len(b.Hosts()) == 0 {
			t.Errorf("%s reaches nothing", kind)
		}
		if b.Provider = "openai"; b.Hosts() != nil {
			t.Errorf("%s with a provider reaches %v", kind, b.Hosts())
		}
	}
	b := NewBackend("x", OpenCode)
	b.Model = "anthropic/claude-sonnet-4-5"
	if got := strings.Join(words(b.Hosts()), " "); got != "models.dev:443 api.anthropic.com:443" {
		t.Errorf("OpenCode reaches %s, want its own host and the model's", got)
	}
	if b := NewBackend("x", Command); b.Hosts() != nil {
		t.Errorf("a command reaches %v", b.Hosts())
	}
}

func TestWithoutASandboxNothingIsWalled(t *testing.T) {
	for _, c := range []struct{ mode, network, want string }{
		{SandboxAuto, NetworkWalled, ""}, {SandboxAuto, NetworkOpen, "sandbox.network: open"}, {SandboxPod, NetworkWalled, "sandbox.mode: pod"}, {SandboxNone, NetworkWalled, "sandbox.mode: none"}, {SandboxNone, NetworkOpen, "sandbox.mode: none"},
	} {
		if got := (Sandbox{Mode: c.mode, Network: c.network}).Unwalled(); got != c.want {
			t.Errorf("sandbox %s, network %s: %q, want %q", c.mode, c.network, got, c.want)
		}
	}
}

func words[T interface{ String() string }](list []T) (all []string) {
	for _, v := range list {
		all = append(all, v.String())
	}
	return all
}
