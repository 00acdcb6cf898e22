package config

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

type HTTP struct {
	Address string `yaml:"address"` // of the webhook, host:port; an empty host means every interface
	// Pages is the address of the pages, whose listener is their own; empty means DefaultPages or, where that is
	// taken, a free port of the loopback.
	Pages string `yaml:"pages"`
	// PublicURL is where people reach the pages; empty means that comments and check runs carry no link to them,
	// and that they are reached by the address of their listener only.
	PublicURL string `yaml:"public_url"`
	// HooksFrom is HooksFromAny or HooksFromGitHub: whose webhooks are read at all, before their signature decides.
	HooksFrom string `yaml:"hooks_from"`
	// Proxies are the addresses of proxies, as prefixes, whose X-Forwarded-For is believed.
	Proxies      []netip.Prefix `yaml:"proxies"`
	Operators    []string       `yaml:"operators"`     // logins of those who may see and do everything here
	MetricsToken Secret         `yaml:"metrics_token"` // by which a program reads /metrics
	Drain        time.Duration  `yaml:"drain"`         // how long attempts may go on after SIGTERM before they are handed over
}

const (
	HooksFromAny    = "any"
	HooksFromGitHub = "github" // the addresses that GitHub publishes
)

// DefaultPages is where the pages are without HTTP.Pages.
const DefaultPages = "127.0.0.1:8081"

// validateHTTP checks what stands in server.
func validateHTTP(s *source, h *HTTP) {
	s.validateAddress("server.address", h.Address)
	between(s, "server.drain", h.Drain, 0, maxDrain)
	if h.Pages != "" {
		s.validateAddress("server.pages", h.Pages)
		_, port, _ := net.SplitHostPort(h.Pages)
		s.addIf(
			h.Pages == h.Address && port != "0",
			"server.pages",
			"is server.address as well; the pages have a listener of their own, so that the webhook can be public and they need not be",
		)
	}
	if h.PublicURL != "" {
		s.validateURL("server.public_url", &h.PublicURL)
	}
	for i, name := range h.Operators {
		s.addIf(
			!login.MatchString(name),
			fmt.Sprintf("server.operators[%d]", i),
			"%s is no login; write that of an account without @",
			quote(name),
		)
	}
	s.oneOf("server.hooks_from", h.HooksFrom, HooksFromAny, HooksFromGitHub)
	n := len(h.MetricsToken.Reveal())
	s.addIf(
		isShortSecret(n),
		"server.metrics_token",
		"has %d characters; use at least %d random ones",
		n,
		minWebhookSecret,
	)
}
