// Package deploy_test checks that the examples in this folder fit Pawl. The module validate checks that they are valid.
package deploy_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/dustin/go-humanize"
	"go.yaml.in/yaml/v3"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/doctor"
	"github.com/pawlbot/pawl/internal/needs"
)

// The default configuration, which pawl setup keeps, determines the required resources.
func TestExamplesHaveTheResourcesThatDoctorRequires(t *testing.T) {
	need := doctor.RoomFor(config.Default())
	atLeast := func(what, limit string, least config.Bytes) {
		t.Helper()
		if !strings.HasSuffix(limit, "i") {
			limit = strings.TrimSuffix(limit, "g") + "Gi" // a compose file's 18g means 18 GiB
		}
		if got, err := humanize.ParseBytes(limit); err != nil || config.Bytes(got) < least {
			t.Errorf("%s is %s, want at least %s: %v", what, limit, least, err)
		}
	}
	var compose struct {
		Services struct {
			Pawl struct {
				Pids   int    `yaml:"pids_limit"`
				Memory string `yaml:"mem_limit"`
			}
		}
	}
	decode(t, "compose.yml", &compose)
	atLeast("mem_limit", compose.Services.Pawl.Memory, need.Memory)
	if got := compose.Services.Pawl.Pids; got < need.PIDs {
		t.Errorf("pids_limit is %d, want at least %d", got, need.PIDs)
	}
	var chart struct {
		Storage   string
		Resources struct{ Limits map[string]string }
	}
	decode(t, "helm/pawl/values.yaml", &chart)
	atLeast("limits.memory", chart.Resources.Limits["memory"], need.Memory)
	atLeast("limits.ephemeral-storage", chart.Resources.Limits["ephemeral-storage"], need.Disk)
	atLeast("storage", chart.Storage, need.Volume)
	pod := read(t, "helm/pawl/templates/statefulset.yaml")
	atLeast("the volume tmp", regexp.MustCompile(`name: tmp\n +emptyDir: {sizeLimit: (\w+)}`).FindStringSubmatch(pod)[1], need.Disk)

	unit := map[string]string{}
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(read(t, "pawl.service"), -1) {
		unit[m[1]] = m[2]
	}
	for key, least := range map[string]int{"TasksMax": need.PIDs, "LimitNOFILE": need.Files} {
		if got, err := strconv.Atoi(unit[key]); err != nil || got < least {
			t.Errorf("%s is %s, want at least %d", key, unit[key], least)
		}
	}
	if unit["Delegate"] != "yes" || unit["EnvironmentFile"] != "-/etc/pawl.env" {
		t.Errorf("Delegate=%q and EnvironmentFile=%q, want yes and -/etc/pawl.env", unit["Delegate"], unit["EnvironmentFile"])
	}
}

// The examples and pages must name the chart's version.
func TestExamplesNameOneRelease(t *testing.T) {
	var chart struct{ Version string }
	decode(t, "helm/pawl/Chart.yaml", &chart)
	for _, name := range []string{"compose.yml", "kubernetes/pawl.yaml", "README.md", "../../docs/install.md"} {
		found := regexp.MustCompile(`ghcr\.io/pawlbot/pawl:(?:\$\{PAWL_TAG:-)?([^\s{]+?)-[a-z]+\b`).FindAllStringSubmatch(read(t, name), -1)
		if len(found) == 0 {
			t.Errorf("%s names no image", name)
		}
		for _, m := range found {
			if m[1] != chart.Version {
				t.Errorf("%s: %s, want %s", name, m[0], chart.Version)
			}
		}
	}
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func decode(t *testing.T, name string, to any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, name)), to); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// systemd's own validator reads the unit. It needs an existing program and user, so the test replaces Pawl's.
func TestSystemdUnitIsValid(t *testing.T) {
	verify := needs.Program(t, "systemd-analyze")
	unit := read(t, "pawl.service")
	testable := strings.NewReplacer("/usr/local/bin/pawl ", "/bin/true ", "User=pawl", "User=root").Replace(unit)
	try := func(text string) (string, error) {
		path := filepath.Join(t.TempDir(), "pawl.service")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command(verify, "verify", "--man=no", path).CombinedOutput()
		if strings.Contains(string(out), "pawl.service:") && err == nil {
			err = errors.New("systemd-analyze reports a problem")
		}
		return string(out), err
	}
	if out, err := try(testable); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	if out, err := try(strings.Replace(testable, "KillMode=mixed", "KillMode=gently", 1)); err == nil {
		t.Errorf("an invalid unit is accepted:\n%s", out)
	}
}
