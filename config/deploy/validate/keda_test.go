package validate

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/kedacore/keda/v2/version" // so that go.mod names the module, whose schema is read
	"github.com/santhosh-tekuri/jsonschema/v6"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

// scaled is the part of a ScaledObject that the tests look at.
type scaled struct {
	Metadata struct{ Namespace string }
	Spec     struct{ ScaleTargetRef struct{ Name string } }
}

// scaledObject checks a ScaledObject by KEDA's published schema and returns it.
func scaledObject(t *testing.T, text string) (o scaled) {
	t.Helper()
	if err := validScaledObject(t, text); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

func validScaledObject(t *testing.T, text string) error {
	t.Helper()
	folder, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/kedacore/keda/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(filepath.Join(strings.TrimSpace(string(folder)), "config/crd/bases/keda.sh_scaledobjects.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var definition apiextensionsv1.CustomResourceDefinition
	if err := yaml.UnmarshalStrict(data, &definition); err != nil {
		t.Fatal(err)
	}
	version := definition.Spec.Versions[0]
	text = strings.TrimSpace(text)
	if want := fmt.Sprintf("apiVersion: %s/%s\nkind: %s\n", definition.Spec.Group, version.Name, definition.Spec.Names.Kind); !strings.Contains(text, want) {
		return errors.New("it is not a " + want)
	}
	schema := map[string]any{}
	encoded, err := yaml.Marshal(version.Schema.OpenAPIV3Schema)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(encoded, &schema); err != nil {
		t.Fatal(err)
	}
	properties := schema["properties"].(map[string]any)
	closeObjects(schema)
	properties["metadata"] = true // the same in all kinds
	compiler := jsonschema.NewCompiler()
	if err := compiler.AddResource("scaledobject.json", schema); err != nil {
		t.Fatal(err)
	}
	compiled, err := compiler.Compile("scaledobject.json")
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := yaml.Unmarshal([]byte(text), &value); err != nil {
		return err
	}
	return compiled.Validate(value)
}

// closeObjects refuses unknown fields, as the API server does with --validate=strict.
func closeObjects(schema map[string]any) {
	if properties, ok := schema["properties"].(map[string]any); ok {
		schema["additionalProperties"] = false
		for _, p := range properties {
			closeObjects(p.(map[string]any))
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if below, ok := schema[key].(map[string]any); ok {
			closeObjects(below)
		}
	}
}

func TestInvalidScaledObjectsAreRefused(t *testing.T) {
	good := read(t, "../kubernetes/keda.yaml")
	if err := validScaledObject(t, good); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string][2]string{
		"an unknown field":       {"minReplicaCount", "minReplicas"},
		"an unknown field below": {"stabilizationWindowSeconds", "stabilisationWindowSeconds"},
		"a word for a number":    {"maxReplicaCount: 10", "maxReplicaCount: ten"},
		"a number for a word":    {`threshold: "1"`, "threshold: 1"},
		"no target":              {"scaleTargetRef: {name: pawl-agents}", "scaleTargetRef: {}"},
		"another kind":           {"kind: ScaledObject", "kind: ScaledJob"},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("%s: %q is not in the file", name, c[0])
		}
		if validScaledObject(t, bad) == nil {
			t.Errorf("%s (%q) was accepted", name, c[1])
		}
	}
}
