package config

import (
	"fmt"
	"net"
	"net/netip"
	"time"
)

type HTTP struct {
	// An empty Address means that this server polls, or that another server on its database receives webhooks.
	Address string `yaml:"address"`
	// Empty Pages means DefaultPages, or a free loopback port if that is taken.
	Pages        string         `yaml:"pages"`
	PublicURL    string         `yaml:"public_url"`
	HooksFrom    string         `yaml:"hooks_from"` // HooksFromAny or HooksFromGitHub
	Proxies      []netip.Prefix `yaml:"proxies"`
	Operators    []string       `yaml:"operators"`
	MetricsToken Secret         `yaml:"metrics_token"`
	Drain        time.Duration  `yaml:"drain"`
}

const (
	HooksFromAny    = "any"
	HooksFromGitHub = "github" // addresses that GitHub publishes
)

const DefaultPages = "127.0.0.1:8081"

func validateHTTP(s *source, h *HTTP) {
	if h.Address != "" {
		s.validateAddress("server.address", h.Address)
	}
	between(s, "server.drain", h.Drain, 0, maxDrain)
	if h.Pages != "" {
		s.validateAddress("server.pages", h.Pages)
		_, port, _ := net.SplitHostPort(h.Pages)
		s.addIf(
			h.Pages == h.Address && port != "0",
			"server.pages",
			"equals server.address; give the pages their own address, so that only the webhook need be public",
		)
	}
	if h.PublicURL != "" {
		s.validateURL("server.public_url", &h.PublicURL)
	}
	for i, name := range h.Operators {
		s.addIf(
			!login.MatchString(name),
			fmt.Sprintf("server.operators[%d]", i),
			"%s is not a login; write an account name without @",
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
