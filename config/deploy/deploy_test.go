// Package deploy_test checks the configurations of Pawl in the examples of this
// folder. That the examples are valid themselves is checked in validate.
package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
)

// load reads a configuration as the server does, with what the examples put into
// its environment.
func load(t *testing.T, text []byte, previous string) config.Server {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pawl.yml")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	environment := map[string]string{
		"PAWL_APP_ID": "1", "PAWL_WEBHOOK_SECRET": "a webhook secret of some length", "PAWL_PREVIOUS_WEBHOOK_SECRET": previous,
		"PAWL_DATABASE": "postgres://pawl:secret@postgres/pawl", "OPENAI_API_KEY": "a-key",
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

// configurations are those of Pawl in the examples.
func configurations(t *testing.T) map[string][]byte {
	t.Helper()
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
	return map[string][]byte{"compose": compose, "kubernetes": []byte(manifest.Data["pawl.yml"])}
}

func TestTheServersOfTheExamplesAreConfiguredForPostgreSQL(t *testing.T) {
	for name, text := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			cfg := load(t, text, "")
			if cfg.Database.Driver != config.Postgres || cfg.DataDir != "/data" || cfg.Sandbox.Mode != config.SandboxAuto || len(cfg.Backends) == 0 {
				t.Errorf("database %s, data_dir %s, sandbox %s, %d backends", cfg.Database.Driver, cfg.DataDir, cfg.Sandbox.Mode, len(cfg.Backends))
			}
		})
	}
}

// Agents of the examples are given no login, so they need a provider, and the
// webhook secret can be changed without a change of the configuration.
func TestTheExamplesHaveAProviderAndRoomForASecondSecret(t *testing.T) {
	const previous = "the secret before this one"
	for name, text := range configurations(t) {
		t.Run(name, func(t *testing.T) {
			if cfg := load(t, text, ""); !cfg.GitHub.App.PreviousWebhookSecret.Empty() {
				t.Error("a previous secret is accepted where there is none")
			}
			cfg := load(t, text, previous)
			if cfg.GitHub.App.PreviousWebhookSecret.Reveal() != previous {
				t.Error("the previous secret is not read")
			}
			for _, b := range cfg.Backends {
				if b.Provider == "" {
					t.Errorf("backend %s has no way to its model", b.Name)
				}
			}
		})
	}
}

// maxProcesses is how many processes and threads one sandbox may have
// (internal/sandbox); Go and git of the server need some more.
const (
	maxProcesses = 4096
	ownProcesses = 1024
)

func TestTheContainerHasRoomForTheForkBombOfEveryAgent(t *testing.T) {
	text, err := os.ReadFile("compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	var compose struct {
		Services map[string]struct {
			Pids int `yaml:"pids_limit"`
		}
	}
	if err := yaml.Unmarshal(text, &compose); err != nil {
		t.Fatal(err)
	}
	workers := load(t, configurations(t)["compose"], "").Workers
	if got, want := compose.Services["pawl"].Pids, workers*maxProcesses+ownProcesses; got < want {
		t.Errorf("pids_limit is %d, want at least %d for %d workers", got, want, workers)
	}
}

// The unit is read by systemd's own validator; the program and the user, which it looks for, are ones that are there.
func TestTheUnitIsValid(t *testing.T) {
	verify, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed; .ci/setup installs it")
	}
	unit, err := os.ReadFile("pawl.service")
	if err != nil {
		t.Fatal(err)
	}
	there := strings.NewReplacer("/usr/local/bin/pawl ", "/bin/true ", "User=pawl", "User=root").Replace(string(unit))
	try := func(text string) (string, error) {
		path := filepath.Join(t.TempDir(), "pawl.service")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(verify, "verify", "--man=no", path).CombinedOutput()
		if strings.Contains(string(out), "pawl.service:") && err == nil {
			err = errors.New("it complains")
		}
		return string(out), err
	}
	if out, err := try(there); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := try(strings.Replace(there, "KillMode=mixed", "KillMode=gently", 1)); err == nil {
		t.Errorf("a wrong unit is accepted:\n%s", out)
	}
}
