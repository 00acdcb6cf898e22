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
	"github.com/pawlbot/pawl/internal/needs"
)

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
	workers := config.Default().Workers // which pawl setup leaves as it is
	if got, want := compose.Services["pawl"].Pids, workers*maxProcesses+ownProcesses; got < want {
		t.Errorf("pids_limit is %d, want at least %d for %d workers", got, want, workers)
	}
}

// The unit is read by systemd's own validator; the program and the user, which it looks for, are ones that are there.
func TestTheUnitIsValid(t *testing.T) {
	verify := needs.Program(t, "systemd-analyze")
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
