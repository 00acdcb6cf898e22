package config

import (
	"cmp"
	"fmt"
	"net"
)

// Gateway lets agents' machines work without the providers' keys: servers with a URL send their model calls to the
// server with an Address, which adds its keys. The zero value keeps model calls on each server.
type Gateway struct {
	URL   string `yaml:"url"`
	Token Secret `yaml:"token"` // sent to the server at URL
	// Address serves other servers' model calls.
	Address  string        `yaml:"address"`
	CertFile string        `yaml:"cert_file"`
	KeyFile  string        `yaml:"key_file"`
	Nodes    []GatewayNode `yaml:"nodes"`
}

// GatewayNode is a server that may use the providers of this one.
type GatewayNode struct {
	Name  string `yaml:"name"`
	Token Secret `yaml:"token"`
}

// Relay is another server that adds a provider's key. The zero value means none.
type Relay struct {
	URL   string
	Token Secret
}

// Endpoint returns the URL that model calls go to.
func (p Provider) Endpoint() string { return cmp.Or(p.Relay.URL, p.BaseURL) }

// Credential returns the secret that model calls send: the provider's key, or the token of its relay.
func (p Provider) Credential() Secret {
	if p.Relay.URL != "" {
		return p.Relay.Token
	}
	return p.Key
}

// relay makes the providers send their calls to the gateway's URL, if there is one.
func (c *Server) relay() {
	for i := range c.Providers {
		p := &c.Providers[i]
		p.Relay = Relay{}
		if c.Gateway.URL != "" {
			p.Relay = Relay{URL: c.Gateway.URL + "/" + p.Name, Token: c.Gateway.Token}
		}
	}
}

func (s *source) validateGateway(c *Server) {
	g := &c.Gateway
	if g.URL != "" {
		s.validateRelay(c)
	}
	if g.Address != "" {
		s.validateGatewayAddress(g)
	}
	s.addIf(g.URL != "" && g.Address != "", "gateway.url", "is given together with gateway.address; a server either sends its model calls on or receives model calls of others")
	s.addIf(g.URL == "" && !g.Token.Empty(), "gateway.token", "is given without gateway.url; write the URL of the server with the providers' keys")
	s.addIf(g.Address == "" && len(g.Nodes) > 0, "gateway.nodes", "is given without gateway.address; write the HOST:PORT at which these servers reach this one")
}

// validateRelay checks a server that sends its model calls to another.
func (s *source) validateRelay(c *Server) {
	s.validateURL("gateway.url", &c.Gateway.URL)
	if u, ok := webURL(c.Gateway.URL); ok {
		s.addIf(u.Scheme != "https" && !isLoopback(u.Hostname()), "gateway.url", "sends the token and the prompts unencrypted; write https://")
	}
	s.validateToken("gateway.token", c.Gateway.Token)
	for i, p := range c.Providers {
		s.addIf(!p.Key.Empty(), fmt.Sprintf("providers[%d].key", i), "is not used with gateway.url; keep the key on that server only")
	}
}

func (s *source) validateGatewayAddress(g *Gateway) {
	s.validateAddress("gateway.address", g.Address)
	host, _, _ := net.SplitHostPort(g.Address)
	for key, file := range map[string]string{"gateway.cert_file": g.CertFile, "gateway.key_file": g.KeyFile} {
		s.addIf(file == "" && !isLoopback(host), key, "is missing; only a loopback address needs no TLS certificate")
	}
	s.addIf((g.CertFile == "") != (g.KeyFile == ""), "gateway.cert_file", "and key_file belong together")
	s.addIf(len(g.Nodes) == 0, "gateway.nodes", "is missing; list the servers that may send model calls, with a token for each")
	names, tokens := map[string]bool{}, map[string]bool{}
	for i, n := range g.Nodes {
		key := fmt.Sprintf("gateway.nodes[%d]", i)
		s.validateName(key+".name", n.Name, "server")
		s.addIf(names[n.Name], key+".name", "%q is listed twice", n.Name)
		s.validateToken(key+".token", n.Token)
		s.addIf(tokens[n.Token.Reveal()], key+".token", "is another server's token, too; give each its own")
		names[n.Name], tokens[n.Token.Reveal()] = true, true
	}
}

func (s *source) validateToken(key string, token Secret) {
	n := len(token.Reveal())
	s.addIf(n < minWebhookSecret, key, "has %d characters; use at least %d random ones, the same on both servers", n, minWebhookSecret)
}

// isLoopback reports whether a host is certainly this machine.
func isLoopback(host string) bool {
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
