package config

import (
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// validateServer checks everything outside policy and the backends and tidies
// the URLs.
func (s *source) validateServer(c *Server) {
	s.validateAddress("server.address", c.HTTP.Address)
	if c.HTTP.PublicURL != "" {
		s.validateURL("server.public_url", &c.HTTP.PublicURL)
	}
	s.validateURL("github.web_url", &c.GitHub.WebURL)
	s.validateURL("github.v3_api_url", &c.GitHub.V3APIURL)
	s.validateURL("github.v4_api_url", &c.GitHub.V4APIURL)
	s.validateApp(c.GitHub.App)
	if c.DataDir == "" || strings.ContainsRune(c.DataDir, 0) {
		s.add("data_dir", "names no folder; write . for the folder of this file")
	}
	s.oneOf("sandbox.mode", c.Sandbox.Mode, SandboxAuto, SandboxNone)
	for i, path := range c.Sandbox.ReadOnly {
		if path == "" || path == "/" || strings.ContainsRune(path, 0) {
			s.add(fmt.Sprintf("sandbox.read_only[%d]", i), "%s cannot be shown; name a folder or a file that holds no secret", quote(path))
		}
	}
	s.span("github.write_spacing", c.GitHub.WriteSpacing, 0, maxWriteSpacing)
	if c.Tracing.Endpoint != "" {
		s.validateURL("tracing.endpoint", &c.Tracing.Endpoint)
	}
	s.validateProviders(c.Providers)
	s.oneOf("log.level", c.Log.Level, "trace", "debug", "info", "warn", "error")
	s.between("workers", int64(c.Workers), 1, maxWorkers)
	if c.Retention.Deliveries < minDeliveryRetention {
		s.add("retention.deliveries", "%s is too short; GitHub redelivers for days under the same GUID, so keep at least 720h",
			c.Retention.Deliveries)
	}
	if c.Retention.Transcripts < minTranscripts {
		s.add("retention.transcripts", "%s is too short; keep at least %s, so that people can look at what went wrong", c.Retention.Transcripts, minTranscripts)
	}
	if c.Retention.Threads < minThreads {
		s.add("retention.threads", "%s is too short; keep at least %s, so that what Pawl wrote is still known as its own", c.Retention.Threads, minThreads)
	}
}

func (s *source) validateApp(app App) {
	if !s.set("github.app.integration_id") {
		s.add("github.app.integration_id", "is missing; write the App ID from the App's settings page, or run pawl setup")
	} else if app.IntegrationID <= 0 {
		s.add("github.app.integration_id", "must be the App ID, a positive number; it is on the App's settings page")
	}
	if n := len(app.WebhookSecret.Reveal()); n == 0 {
		s.add("github.app.webhook_secret", "is missing; without it anybody could send webhooks, so set the same random text of at least %d characters here and in the App's settings", minWebhookSecret)
	} else if n < minWebhookSecret {
		s.add("github.app.webhook_secret", "has %d characters; use at least %d random ones, the same as in the App's settings", n, minWebhookSecret)
	}
	if n := len(app.PreviousWebhookSecret.Reveal()); n > 0 && n < minWebhookSecret {
		s.add("github.app.previous_webhook_secret", "has %d characters; use the secret that was valid before, or remove it", n)
	}
	inline, file := !app.PrivateKey.Empty(), app.PrivateKeyFile != ""
	switch {
	case inline && file:
		s.add("github.app.private_key", "is given together with private_key_file; keep one of the two")
	case !inline && !file:
		s.add("github.app.private_key_file", "is missing; name the .pem file that was downloaded from the App's settings, or put its text in private_key")
	case inline:
		if problem := keyProblem([]byte(app.PrivateKey.Reveal())); problem != "" {
			s.add("github.app.private_key", "%s", problem)
		}
	}
}

func (s *source) validateAddress(key, address string) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		s.add(key, "%s is not host:port; write it like 127.0.0.1:8080, or :8080 for every interface", s.found(key))
		return
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		s.add(key, "%s has no port between 0 and 65535; write it like 127.0.0.1:8080", s.found(key))
	}
}

// validateURL checks an absolute URL and cuts the slashes at its end, since
// paths are appended to it.
func (s *source) validateURL(key string, value *string) {
	u, err := url.Parse(*value)
	switch {
	case err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "":
		s.add(key, "is not an absolute URL; write it like https://github.example.com")
	case u.User != nil:
		s.add(key, "holds a user or password; remove it, Pawl signs in as the App")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		s.add(key, "holds a query or fragment; remove everything from ? or # on")
	default:
		*value = strings.TrimRight(*value, "/")
	}
}

func (s *source) oneOf(key, value string, allowed ...string) {
	if !slices.Contains(allowed, value) {
		s.add(key, "%s is not known; use %s", s.found(key), orList(allowed))
	}
}

func (s *source) between(key string, value, low, high int64) {
	if value < low || value > high {
		s.add(key, "%d is out of range; use %d to %d", value, low, high)
	}
}

// orList joins words as a person would: a, b or c.
func orList(words []string) string {
	if len(words) < 2 {
		return strings.Join(words, "")
	}
	last := len(words) - 1
	return strings.Join(words[:last], ", ") + " or " + words[last]
}
