package validate

import (
	"flag"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/yaml"
)

// The plain manifests, and the chart's values for the second one.
const (
	plain        = "../kubernetes/pawl.yaml"
	plainWorkers = "../kubernetes/workers.yaml"
	exampleAt    = "../kubernetes/values-workers.yaml"
)

var (
	update = flag.Bool("update", false, "write kubernetes/pawl.yaml and workers.yaml")
	chart  string
)

func init() {
	flag.StringVar(&chart, "chart", "../helm/pawl", "the chart's folder, such as the one in a release's package")
}

// version returns the release that the chart belongs to.
func version(t *testing.T) string {
	t.Helper()
	var c struct{ Version, AppVersion string }
	if err := yaml.Unmarshal([]byte(read(t, chart+"/Chart.yaml")), &c); err != nil || c.Version != c.AppVersion {
		t.Fatalf("the chart %s is for Pawl %s: %v", c.Version, c.AppVersion, err)
	}
	return c.Version
}

// everything sets each chart value to something other than its default.
var everything = map[string]any{
	"agent": "qwen", "image": "registry.example.com/own:1", "secret": "other", "env": []any{"OPENAI_API_KEY", "PAWL_DATABASE"}, "replicas": 3, "sandbox": "none",
	"storage": "1Ti", "storageClass": "fast", "resources": map[string]any{"limits": map[string]any{"memory": "4Gi"}},
	"ingress":       map[string]any{"host": "pawl.example.com", "className": "traefik", "tlsSecret": "own", "annotations": map[string]any{"a": "b"}},
	"networkPolicy": map[string]any{"from": []any{"traefik"}, "postgres": []any{"10.1.2.3/32"}},
	"workers": []any{map[string]any{
		"name": "gpu", "env": []any{"PAWL_DATABASE"}, "replicas": 4, "config": "gpu.yml", "image": "registry.example.com/gpu:1", "resources": map[string]any{"limits": map[string]any{"memory": "5Gi"}},
		"nodeSelector": map[string]any{"gpu": "true"}, "tolerations": []any{map[string]any{"key": "gpu", "operator": "Exists"}},
	}},
	"workerResources": map[string]any{"limits": map[string]any{"memory": "6Gi"}},
}

func template(t *testing.T, values map[string]any) string {
	t.Helper()
	if err := Lint(chart, values); err != nil {
		t.Errorf("%v: %v", values, err)
	}
	text, notes, err := Template(chart, values)
	if err != nil || !strings.Contains(notes, "pawl doctor --config /data/pawl.yml") {
		t.Fatalf("%v: notes %q, %v", values, notes, err)
	}
	return text
}

func TestPlainManifestsMatchTheChart(t *testing.T) {
	const madeBy = "# Made from ../helm/pawl by go test -C config/deploy/validate . -update: its objects with "
	for file, want := range map[string]string{
		plain:        madeBy + "the default values.\n" + template(t, nil),
		plainWorkers: madeBy + "values-workers.yaml.\n" + template(t, workersValues(t)),
	} {
		if *update {
			if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if read(t, file) != want {
			t.Errorf("%s differs from the chart's output; go test -C config/deploy/validate . -update writes it", file)
		}
	}
}

// workersValues returns the values of the example with workers.
func workersValues(t *testing.T) (values map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(read(t, exampleAt)), &values); err != nil {
		t.Fatal(err)
	}
	return values
}

func TestChartUsesEveryValue(t *testing.T) {
	few := manifests(t, nil)
	all := manifests(t, everything)
	if few.ingress != nil || all.ingress == nil || all.ingress.Spec.Rules[0].Host != "pawl.example.com" || all.ingress.Annotations["a"] != "b" || *all.ingress.Spec.IngressClassName != "traefik" {
		t.Errorf("ingress %v with the defaults and %v with all values", few.ingress, all.ingress)
	}
	pod := all.set.Spec.Template.Spec
	if *all.set.Spec.Replicas != 3 || pod.HostUsers != nil || pod.Containers[0].SecurityContext.ProcMount != nil || len(pod.Containers[0].Env) != 2 ||
		pod.Containers[0].Env[0].ValueFrom.SecretKeyRef.Name != "other" || pod.Volumes[0].Secret.SecretName != "other" || pod.Containers[0].Resources.Limits.Memory().String() != "4Gi" {
		t.Errorf("the stateful set %+v lacks a value", all.set.Spec)
	}
	if claim := all.set.Spec.VolumeClaimTemplates[0].Spec; *claim.StorageClassName != "fast" || claim.Resources.Requests.Storage().String() != "1Ti" {
		t.Errorf("volume claim %+v, want 1Ti of the class fast", claim)
	}
	if to := all.network.Spec.Egress[1]; to.To[0].IPBlock.CIDR != "10.1.2.3/32" || to.Ports[0].Port.IntValue() != 5432 {
		t.Errorf("egress %+v, want 10.1.2.3/32 at port 5432", to)
	}
	if image(all.set) != "registry.example.com/own:1" {
		t.Errorf("the image is %s, want registry.example.com/own:1", image(all.set))
	}
	var values map[string]any
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.yaml")), &values); err != nil || !slices.Equal(slices.Sorted(maps.Keys(values)), slices.Sorted(maps.Keys(everything))) {
		t.Errorf("values.yaml has other values than this test sets: %v %v", values, err)
	}
}

func image(set *appsv1.StatefulSet) string { return set.Spec.Template.Spec.Containers[0].Image }

// agents lists the values of the Dockerfile's argument AGENT.
func agents(t *testing.T) []string {
	t.Helper()
	_, list, _ := strings.Cut(read(t, "../../../Dockerfile"), "\n# AGENT is one of ")
	list, _, _ = strings.Cut(list, ".\n")
	names := strings.Fields(strings.NewReplacer(",", " ", " or ", " ").Replace(list))
	if len(names) < 6 {
		t.Fatalf("the Dockerfile names %v", names)
	}
	return names
}

func TestEveryAgentOfTheImageCanBeInstalled(t *testing.T) {
	for _, name := range agents(t) {
		if got := image(manifests(t, map[string]any{"agent": name}).set); got != "ghcr.io/pawlbot/pawl:"+version(t)+"-"+name {
			t.Errorf("agent %s starts %s", name, got)
		}
	}
}

func TestChartRefusesUnknownValues(t *testing.T) {
	for name, values := range map[string]map[string]any{
		"an agent without an image": {"agent": "cobol"}, "an unknown value": {"replica": 3}, "text instead of a number": {"replicas": "three"},
		"an unknown nested value": {"ingress": map[string]any{"hosts": "a"}}, "an unknown sandbox": {"sandbox": "gvisor"}, "no secret": {"secret": ""}, "an invalid variable name": {"env": []any{"A-B"}},
		"a group without a name": {"workers": []any{map[string]any{"env": []any{}}}}, "an unknown value of a group": {"workers": []any{map[string]any{"name": "a", "env": []any{}, "replica": 1}}},
	} {
		if err := Lint(chart, values); err == nil {
			t.Errorf("helm lint accepts %s", name)
		}
		if _, _, err := Template(chart, values); err == nil {
			t.Errorf("helm template accepts %s", name)
		}
	}
}
