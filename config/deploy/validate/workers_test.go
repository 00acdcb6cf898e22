package validate

import (
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	psa "k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"
	"sigs.k8s.io/yaml"
)

// forbidden returns why a pod violates a level of the Pod Security Standards, as the API server decides it.
func forbidden(t *testing.T, level psa.Level, pod corev1.PodTemplateSpec) string {
	t.Helper()
	checks, err := policy.NewEvaluator(policy.DefaultChecks(), nil)
	if err != nil {
		t.Fatal(err)
	}
	results := checks.EvaluatePod(psa.LevelVersion{Level: level, Version: psa.LatestVersion()}, &pod.ObjectMeta, &pod.Spec)
	result := policy.AggregateCheckResults(results)
	return result.ForbiddenDetail()
}

func TestPodsMeetTheirNamespacesLevel(t *testing.T) {
	walled, bare := manifests(t, nil), manifests(t, workersValues(t))
	for name, c := range map[string]struct {
		pod       corev1.PodTemplateSpec
		namespace string
		tooStrict psa.Level // the next stricter level, or empty
	}{
		"a server with bubblewrap":   {walled.set.Spec.Template, "../kubernetes/namespace.yaml", psa.LevelBaseline},
		"a server without agents":    {bare.set.Spec.Template, "../kubernetes/namespace-restricted.yaml", ""},
		"a worker":                   {bare.workers[0].Spec.Template, "../kubernetes/namespace-restricted.yaml", ""},
		"a worker with every option": {manifests(t, everything).workers[0].Spec.Template, "../kubernetes/namespace-restricted.yaml", ""},
	} {
		objects, err := Kubernetes([]byte(read(t, c.namespace)))
		if err != nil {
			t.Fatal(err)
		}
		level, err := psa.ParseLevel(objects[0].(*corev1.Namespace).Labels[psa.EnforceLevelLabel])
		if err != nil {
			t.Fatal(err)
		}
		if why := forbidden(t, level, c.pod); why != "" {
			t.Errorf("%s is forbidden in %s: %s", name, c.namespace, why)
		}
		if c.tooStrict != "" && forbidden(t, c.tooStrict, c.pod) == "" {
			t.Errorf("%s is within %s, so %s allows too much", name, c.tooStrict, c.namespace)
		}
	}
	// As a control, the check must report a pod without one of the settings.
	pod := bare.workers[0].Spec.Template.DeepCopy()
	pod.Spec.Containers[0].SecurityContext.Capabilities = nil
	if forbidden(t, psa.LevelRestricted, *pod) == "" {
		t.Error("a worker with the default capabilities is allowed")
	}
}

func TestWorkersHoldFewSecrets(t *testing.T) {
	c := manifests(t, workersValues(t))
	spec := c.workers[0].Spec.Template.Spec
	if *spec.AutomountServiceAccountToken || *spec.HostUsers || !*spec.ShareProcessNamespace {
		t.Errorf("token %v, host users %v, shared processes %v", *spec.AutomountServiceAccountToken, *spec.HostUsers, *spec.ShareProcessNamespace)
	}
	pawl := spec.Containers[0]
	if !*pawl.SecurityContext.ReadOnlyRootFilesystem || !slices.Equal(pawl.Command, []string{"pawl"}) {
		t.Errorf("the command %v runs in %+v", pawl.Command, pawl.SecurityContext)
	}
	for _, v := range spec.Volumes {
		if v.Secret != nil && (len(v.Secret.Items) != 1 || v.Secret.Items[0].Key != "worker.yml") {
			t.Errorf("agents can read %+v", v.Secret.Items)
		}
	}
	// A probe that runs a command would have the secrets in its environment.
	for _, probe := range []*corev1.Probe{pawl.StartupProbe, pawl.ReadinessProbe, pawl.LivenessProbe} {
		if probe.HTTPGet == nil || probe.HTTPGet.Port.String() != pawl.Ports[0].Name {
			t.Errorf("the probe is %+v", probe)
		}
	}
	if pawl.Lifecycle != nil {
		t.Errorf("a command runs at %+v", pawl.Lifecycle)
	}
}

func TestServersObjectsSelectNoWorkers(t *testing.T) {
	c := manifests(t, workersValues(t))
	labels := c.workers[0].Spec.Template.Labels
	for _, s := range c.services {
		if selects(s.Spec.Selector, labels) {
			t.Errorf("service %s sends webhooks to workers", s.Name)
		}
	}
	for what, selector := range map[string]map[string]string{
		"StatefulSet":   c.set.Spec.Selector.MatchLabels,
		"budget":        c.budget.Spec.Selector.MatchLabels,
		"NetworkPolicy": c.network.Spec.PodSelector.MatchLabels,
	} {
		if selects(selector, labels) {
			t.Errorf("the servers' %s selects workers", what)
		}
	}
	if !selects(c.workers[0].Spec.Selector.MatchLabels, labels) || c.workers[0].Spec.Strategy.Type != appsv1.RecreateDeploymentStrategyType {
		t.Errorf("the Deployment selects %v and replaces by %s", c.workers[0].Spec.Selector, c.workers[0].Spec.Strategy.Type)
	}
}

func TestWorkerGroupUsesEveryValue(t *testing.T) {
	few, all := manifests(t, workersValues(t)).workers[0], manifests(t, everything).workers[0]
	if few.Spec.Replicas != nil || *all.Spec.Replicas != 4 {
		t.Errorf("%v and %v replicas", few.Spec.Replicas, all.Spec.Replicas)
	}
	if few.Name != "pawl-agents" || all.Name != "pawl-gpu" {
		t.Errorf("the names are %s and %s", few.Name, all.Name)
	}
	spec := all.Spec.Template.Spec
	pawl := spec.Containers[0]
	if pawl.Image != "registry.example.com/gpu:1" || pawl.Resources.Limits.Memory().String() != "5Gi" || spec.Volumes[0].Secret.Items[0].Key != "gpu.yml" {
		t.Errorf("%+v", spec)
	}
	if spec.NodeSelector["gpu"] != "true" || len(spec.Tolerations) != 1 || spec.Volumes[0].Secret.SecretName != "other" {
		t.Errorf("%+v", spec)
	}
	if image := few.Spec.Template.Spec.Containers[0].Image; image != "ghcr.io/pawlbot/pawl:"+version(t)+"-codex" {
		t.Errorf("the image is %s", image)
	}
	var schema struct {
		Properties struct {
			Workers struct {
				Items struct{ Properties map[string]any }
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, chart+"/values.schema.json")), &schema); err != nil {
		t.Fatal(err)
	}
	tried := everything["workers"].([]any)[0].(map[string]any)
	if keys := slices.Sorted(maps.Keys(schema.Properties.Workers.Items.Properties)); !slices.Equal(keys, slices.Sorted(maps.Keys(tried))) {
		t.Errorf("the schema has %v, tried are %v", keys, slices.Sorted(maps.Keys(tried)))
	}
}

// object reads a file with one object.
func object[T runtime.Object](t *testing.T, path string) T {
	t.Helper()
	objects, err := Kubernetes([]byte(read(t, path)))
	if err != nil || len(objects) != 1 {
		t.Fatalf("%s: %d objects, %v", path, len(objects), err)
	}
	return objects[0].(T)
}

func TestAutoscalersScaleTheWorkers(t *testing.T) {
	worker := manifests(t, workersValues(t)).workers[0]
	hpa := object[*autoscalingv2.HorizontalPodAutoscaler](t, "../kubernetes/hpa.yaml")
	to := hpa.Spec.ScaleTargetRef
	want := autoscalingv2.CrossVersionObjectReference{Kind: "Deployment", APIVersion: "apps/v1", Name: worker.Name}
	if to != want || hpa.Namespace != worker.Namespace {
		t.Errorf("the autoscaler is for %+v in %s", to, hpa.Namespace)
	}
	keda := scaledObject(t, read(t, "../kubernetes/keda.yaml"))
	if keda.Spec.ScaleTargetRef.Name != worker.Name || keda.Metadata.Namespace != worker.Namespace {
		t.Errorf("KEDA is for %+v in %s", keda.Spec.ScaleTargetRef, keda.Metadata.Namespace)
	}
}
