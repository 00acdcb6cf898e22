// Package deploy_test checks the configurations of Pawl in the examples of this
// folder. That the examples are valid themselves is checked in validate.
package deploy_test

import (
	"os"
	"path/filepath"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
)

// load reads a configuration as the server does, with what the examples put into
// its environment.
func load(t *testing.T, text []byte) config.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pawl.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"PAWL_APP_ID": "1", "PAWL_WEBHOOK_SECRET": "a webhook secret of some length", "PAWL_DATABASE": "postgres://pawl:secret@postgres/pawl",
	}
	cfg, err := config.Load(file, func(name string) (string, bool) {
		value, ok := environment[name]
		return value, ok
	})
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestTheServersOfTheExamplesAreConfiguredForPostgreSQL(t *testing.T) {
	compose, err := os.ReadFile("pawl.yml")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("kubernetes/configmap.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Data map[string]string `yaml:"data"`
	}
	if err := yaml.Unmarshal(text, &manifest); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"compose": compose, "kubernetes": []byte(manifest.Data["pawl.yml"])} {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, text)
			if cfg.Database.Driver != config.Postgres || cfg.DataDir != "/data" || cfg.Sandbox.Mode != config.SandboxAuto || len(cfg.Backends) == 0 {
				t.Errorf("database %s, data_dir %s, sandbox %s, %d backends", cfg.Database.Driver, cfg.DataDir, cfg.Sandbox.Mode, len(cfg.Backends))
			}
		})
	}
}
