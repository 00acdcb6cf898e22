package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
)

// setupFiles are the files that pawl setup writes.
type setupFiles struct {
	config, key string
	backend     string // its kind
}

// keyFile is the name of the key's file, in the folder of the configuration.
const keyFile = "app.pem"

func newSetupFiles(file, backend string) setupFiles {
	return setupFiles{config: file, key: filepath.Join(filepath.Dir(file), keyFile), backend: backend}
}

// free says what keeps the files from being written.
func (f setupFiles) free() error {
	for _, path := range []string{f.config, f.key} {
		switch _, err := os.Lstat(path); {
		case err == nil:
			return fmt.Errorf("%s exists already, and nothing is overwritten; move it away, or write elsewhere with --config", path)
		case !errors.Is(err, fs.ErrNotExist):
			return fmt.Errorf("look for %s: %w", path, err)
		}
	}
	dir := filepath.Dir(f.config)
	if err := unix.Access(dir, unix.W_OK|unix.X_OK); err != nil {
		return fmt.Errorf("write to the folder %s: %w (make it, or let this user own it)", dir, err)
	}
	return nil
}

// write makes both files and reads the configuration as the server will. The key
// comes first: without it the rest is of no use. unset are the variables that the
// configuration needs and that are not set here.
func (f setupFiles) write(s setup, app forge.NewApp) (unset []string, err error) {
	if err := writeSecret(f.key, app.PrivateKey); err != nil {
		return nil, fmt.Errorf("write the App's private key: %w", err)
	}
	if err := writeSecret(f.config, s.configuration(app)); err != nil {
		return nil, fmt.Errorf("write the configuration (the key is in %s): %w", f.key, err)
	}
	cfg, err := config.Load(f.config, environment(&unset))
	if err == nil {
		_, err = cfg.GitHub.App.Key()
	}
	if err != nil {
		return nil, fmt.Errorf("read what was written: %w", err)
	}
	slices.Sort(unset)
	return slices.Compact(unset), nil
}

// writeSecret makes a file that only this user can read. It follows no link and
// overwrites nothing.
func writeSecret(path, text string) (err error) {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	return file.Sync()
}

// starter is how a backend reaches its model in a new configuration.
type starter struct{ kind, protocol, key string }

func starters() []starter {
	return []starter{
		{config.Codex, config.OpenAI, "OPENAI_API_KEY"},
		{config.Claude, config.Anthropic, "ANTHROPIC_API_KEY"},
		{config.Gemini, config.Google, "GEMINI_API_KEY"},
		{config.OpenCode, config.OpenAI, "OPENAI_API_KEY"},
	}
}

// setupBackends are the kinds that a new configuration can begin with.
func setupBackends() []string {
	var kinds []string
	for _, s := range starters() {
		kinds = append(kinds, s.kind)
	}
	return kinds
}

// configuration is the text of the new file: what a server needs, the rest by its
// defaults, and the other agents as comments.
func (s setup) configuration(app forge.NewApp) string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Made by pawl setup for the App %s. Every other key and its default is in
# config/example.yml. This file holds the webhook's secret: keep it to yourself.

server:
  address: "127.0.0.1:8080" # GitHub must reach it under the public address, through a proxy with TLS
  public_url: %s

github:
  web_url: %s
  v3_api_url: %s
  v4_api_url: %s
  app:
    integration_id: %d
    webhook_secret: %s
    private_key_file: %s

database: sqlite:pawl.db
data_dir: .

`, app.Slug, quoteYAML(s.public.String()), quoteYAML(s.hub.web), quoteYAML(s.hub.rest), quoteYAML(s.hub.graphql), app.ID, quoteYAML(app.WebhookSecret), keyFile)
	all := starters()
	first := slices.IndexFunc(all, func(one starter) bool { return one.kind == s.files.backend })
	fmt.Fprintf(&b, "# Keys of models stay outside of the agents; they are taken from the environment.\nproviders:\n%s", all[first].provider())
	fmt.Fprintf(&b, "\nbackends:\n%s", all[first].backend())
	b.WriteString("\n# Others:\n")
	for i, one := range all {
		if i != first {
			b.WriteString(commented(one.provider() + one.backend()))
		}
	}
	return b.String()
}

func (s starter) provider() string {
	return fmt.Sprintf("  - {name: %s, protocol: %s, key: \"${%s}\"}\n", s.protocol, s.protocol, s.key)
}

func (s starter) backend() string {
	return fmt.Sprintf("  - {name: %s, kind: %s, provider: %s}\n", s.kind, s.kind, s.protocol)
}

func commented(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		b.WriteString("#" + line)
	}
	return b.String()
}

// quoteYAML writes a text in double quotes, in which Go and YAML agree for what
// can be printed, and keeps ${ from being taken for a variable.
func quoteYAML(text string) string {
	return strconv.QuoteToASCII(strings.ReplaceAll(text, "${", "$${"))
}
