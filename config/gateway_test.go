package config_test

import (
	"testing"
)

const onGateway = `
github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef0123, private_key_file: key.pem}}
providers: [{name: openai, protocol: openai}]
gateway: {url: https://keys.example.com/, token: the-token-of-this-node}
backends: [{name: codex, kind: codex, provider: openai}]
`

const withKey = `
github: {app: {integration_id: 1, webhook_secret: 0123456789abcdef0123, private_key_file: key.pem}}
providers: [{name: openai, protocol: openai, key: sk-1}]
backends: [{name: codex, kind: codex, provider: openai}]
`

func TestProvidersCallTheGateway(t *testing.T) {
	c := parsed(t, onGateway)
	p, _ := c.Provider("openai")
	if got := p.Endpoint(); got != "https://keys.example.com/openai" {
		t.Errorf("calls go to %s", got)
	}
	if got := p.Credential().Reveal(); got != "the-token-of-this-node" {
		t.Errorf("calls show %s", got)
	}
	if p.BaseURL != "https://api.openai.com/v1" {
		t.Errorf("base_url is %s, which prices depend on", p.BaseURL)
	}
	for name, secret := range c.Secrets() {
		if secret.Reveal() == "the-token-of-this-node" && name != "gateway.token" {
			t.Errorf("the token is also called %s", name)
		}
	}
}

// gateway needs a restart. Until then the providers keep their keys and URLs, even if gateway.url is added or removed.
func TestProvidersKeepTheirKeysUntilTheRestart(t *testing.T) {
	before, after := parsed(t, withKey), parsed(t, onGateway)
	p, _ := before.Reloaded(after).Provider("openai")
	if p.Credential().Reveal() != "sk-1" || p.Endpoint() != "https://api.openai.com/v1" {
		t.Errorf("with a new gateway.url, calls go to %s with %s", p.Endpoint(), p.Credential().Reveal())
	}
	p, _ = after.Reloaded(before).Provider("openai")
	if p.Credential().Reveal() != "the-token-of-this-node" || p.Endpoint() != "https://keys.example.com/openai" {
		t.Errorf("without gateway.url, calls go to %s with %s", p.Endpoint(), p.Credential().Reveal())
	}
}
