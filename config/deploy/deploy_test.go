// Package deploy_test checks that the examples in this folder fit Pawl. The module validate checks that they are valid.
package deploy_test

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

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
		Workers   struct{ Limits map[string]string } `yaml:"workerResources"`
	}
	decode(t, "helm/pawl/values.yaml", &chart)
	atLeast("limits.memory", chart.Resources.Limits["memory"], need.Memory)
	atLeast("limits.ephemeral-storage", chart.Resources.Limits["ephemeral-storage"], need.Disk)
	atLeast("storage", chart.Storage, need.Volume)
	pod := read(t, "helm/pawl/templates/statefulset.yaml")
	atLeast("the volume tmp", regexp.MustCompile(`name: tmp\n +emptyDir: {sizeLimit: (\w+)}`).FindStringSubmatch(pod)[1], need.Disk)

	need = doctor.RoomFor(workerConfig(t))
	atLeast("the workers' limits.memory", chart.Workers.Limits["memory"], need.Memory)
	atLeast("the workers' limits.ephemeral-storage", chart.Workers.Limits["ephemeral-storage"], need.Volume)
	pod = read(t, "helm/pawl/templates/workers.yaml")
	atLeast("the workers' volume data", regexp.MustCompile(`name: data\n +emptyDir: {sizeLimit: (\w+)}`).FindStringSubmatch(pod)[1], need.Volume)

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

// workerConfig loads the example of a worker's configuration.
func workerConfig(t *testing.T) config.Server {
	t.Helper()
	worker, err := config.Load("kubernetes/worker.yml", func(name string) (string, bool) {
		value := map[string]string{"PAWL_DATABASE": "postgres://pawl:secret@10.1.2.3/pawl", "OPENAI_API_KEY": "sk-example", "PAWL_PRIVATE_KEY": key(t)}[name]
		return value, value != ""
	})
	if err != nil {
		t.Fatal(err)
	}
	return worker
}

// key returns a new private key.
func key(t *testing.T) string {
	t.Helper()
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(made)}))
}

func TestWorkersConfigurationFitsTheirPod(t *testing.T) {
	worker := workerConfig(t)
	if worker.Sandbox.Mode != config.SandboxPod || worker.Workers != 1 || worker.HTTP.Address != "" {
		t.Errorf("mode %s, %d workers, address %q", worker.Sandbox.Mode, worker.Workers, worker.HTTP.Address)
	}
	if keys := worker.LiteralSecrets(); len(keys) > 0 || worker.GitHub.App.PrivateKeyFile != "" {
		t.Errorf("agents can read %v and the file %q", keys, worker.GitHub.App.PrivateKeyFile)
	}
	pod := read(t, "helm/pawl/templates/workers.yaml")
	for _, want := range []string{"mountPath: " + worker.DataDir + "}", "containerPort: " + strings.TrimPrefix(worker.HTTP.Pages, ":") + "}"} {
		if !strings.Contains(pod, want) {
			t.Errorf("the pod has no %q", want)
		}
	}
	const stop = 30 * time.Second // after the drain
	grace := regexp.MustCompile(`terminationGracePeriodSeconds: (\d+)`).FindStringSubmatch(pod)[1]
	if got, err := time.ParseDuration(grace + "s"); err != nil || got < worker.HTTP.Drain+stop {
		t.Errorf("%s s to end, want %s for server.drain and %s more", grace, worker.HTTP.Drain, stop)
	}
	for _, name := range worker.SecretVariables() {
		if !slices.Contains(workersValues(t).Workers[0].Env, name) {
			t.Errorf("the pod has no variable %s", name)
		}
	}
}

// values is the part of the chart's values that the tests look at.
type values struct {
	Env     []string
	Workers []struct{ Env []string }
}

func workersValues(t *testing.T) (v values) {
	t.Helper()
	decode(t, "kubernetes/values-workers.yaml", &v)
	return v
}

// A pod does not start if the Secret lacks a variable. Without a token for metrics, KEDA starts no worker.
func TestStepsCreateEveryVariableOfThePods(t *testing.T) {
	v := workersValues(t)
	_, steps, _ := strings.Cut(read(t, "README.md"), "\n### Workers in pods\n")
	for _, name := range slices.Concat(v.Env, v.Workers[0].Env) {
		if !regexp.MustCompile(`--from-(literal|file)=` + name + `=`).MatchString(steps) {
			t.Errorf("no step creates %s", name)
		}
	}
	if !slices.Contains(v.Env, "PAWL_METRICS_TOKEN") || !strings.Contains(steps, "`metrics_token: ${PAWL_METRICS_TOKEN}`") {
		t.Errorf("the servers' metrics have no token: %v", v.Env)
	}
}

// The metrics' labels are tested in internal/web.
func TestAutoscalersUseExistingMetrics(t *testing.T) {
	documented := read(t, "../../docs/operations.md")
	const query = `max(pawl_attempts_waiting{labels=""}) + max(pawl_attempts_running)`
	for _, name := range []string{"kubernetes/keda.yaml", "kubernetes/hpa.yaml"} {
		if !strings.Contains(read(t, name), query) {
			t.Errorf("%s has another query than %s", name, query)
		}
	}
	for _, m := range regexp.MustCompile(`pawl_(\w+)`).FindAllStringSubmatch(query, -1) {
		if !strings.Contains(documented, "\n| `"+m[1]+"` |") {
			t.Errorf("the metric %s is not in docs/operations.md", m[0])
		}
	}
}

// The examples and pages must name the chart's version.
func TestExamplesNameOneRelease(t *testing.T) {
	var chart struct{ Version string }
	decode(t, "helm/pawl/Chart.yaml", &chart)
	for _, name := range []string{"compose.yml", "kubernetes/pawl.yaml", "kubernetes/workers.yaml", "README.md", "../../docs/install.md"} {
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
