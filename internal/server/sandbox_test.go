package server

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/config"
)

func TestProgramBelowSandboxFoldersIsRefused(t *testing.T) {
	for path, refused := range map[string]bool{
		"/pawl": true, "/pawl/work/pawl": true, "/pawl/home/bin/pawl": true,
		"/usr/local/bin/pawl": false, "/pawl/bin/pawl": false, "/pawl2": false, "/opt/pawl": false,
	} {
		err := misplaced(path)
		if (err != nil) != refused || err != nil && !strings.Contains(err.Error(), "move it") {
			t.Errorf("%s: %v, want refused %v", path, err, refused)
		}
	}
}

func TestSandboxHidesAProgramsSecretFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"codex", "node"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", dir)
	t.Setenv("HOME", t.TempDir())
	shown := func(change func(*config.Server)) []string {
		cfg := config.Default()
		cfg.DataDir, cfg.Database.Path = "/var/lib/pawl", "/var/lib/pawl/pawl.db"
		cfg.Backends = []config.Backend{config.NewBackend("codex", config.Codex)}
		change(&cfg)
		ShowInstalled(&cfg)
		return cfg.Sandbox.ReadOnly
	}
	if got := shown(func(*config.Server) {}); len(got) != 1 || got[0] != dir {
		t.Errorf("visible: %q, want the programs' folder", got)
	}
	for name, change := range map[string]func(*config.Server){
		"the App's key":   func(c *config.Server) { c.GitHub.App.PrivateKeyFile = filepath.Join(dir, "app.pem") },
		"the gateway's":   func(c *config.Server) { c.Gateway.KeyFile = filepath.Join(dir, "key.pem") },
		"the database":    func(c *config.Server) { c.Database.Path = filepath.Join(dir, "pawl.db") },
		"a login":         func(c *config.Server) { c.Backends[0].CredentialFile = filepath.Join(dir, "auth.json") },
		"the home folder": func(*config.Server) { t.Setenv("HOME", dir) },
		"a named script": func(c *config.Server) {
			c.Backends[0].Argv = []string{filepath.Join(dir, "codex")}
			t.Setenv("PATH", "")
		},
	} {
		if got := shown(change); len(got) > 0 {
			t.Errorf("%s: visible: %q, want nothing", name, got)
		}
	}
}
