package validate

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/compose-spec/compose-go/v2/types"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
)

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var variables = map[string]string{"PAWL_APP_ID": "1"}

func TestTheComposeFileIsValid(t *testing.T) {
	p, err := Compose(t.Context(), "..", []byte(read(t, "../compose.yml")), variables)
	if err != nil {
		t.Fatal(err)
	}
	pawl := p.Services["pawl"]
	if pawl.HealthCheck == nil || p.Services["postgres"].HealthCheck == nil || pawl.DependsOn["postgres"].Condition != types.ServiceConditionHealthy {
		t.Error("health checks are missing")
	}
	if grace := pawl.StopGracePeriod; grace == nil || grace.String() != "40s" {
		t.Errorf("stop_grace_period is %v; Pawl needs up to 30 s", grace)
	}
	for name, s := range p.Secrets {
		if !strings.Contains(s.File, "/secrets/") {
			t.Errorf("secret %s is in %s, want it in secrets/, which is not part of the repository", name, s.File)
		}
	}
	for _, name := range []string{"PAWL_WEBHOOK_SECRET", "PAWL_PREVIOUS_WEBHOOK_SECRET", "OPENAI_API_KEY", "PAWL_DATABASE", "POSTGRES_PASSWORD"} {
		for _, s := range p.Services {
			if _, there := s.Environment[name]; there {
				t.Errorf("%s is in the environment of %s, where docker inspect shows it", name, s.Name)
			}
		}
	}
	if ignored := read(t, "../.gitignore"); ignored != "secrets/\n" {
		t.Errorf("git ignores %q, want the folder of the secrets", ignored)
	}
}

func TestAWrongComposeFileIsRefused(t *testing.T) {
	good := read(t, "../compose.yml")
	for name, c := range map[string][2]string{
		"an unknown field":       {"restart: unless-stopped", "restarts: unless-stopped"},
		"an unknown top level":   {"volumes:\n  data:", "volumen:\n  data:"},
		"a wrong type":           {"pids_limit: 9216", "pids_limit: [9216]"},
		"a word for a number":    {"retries: 10", "retries: often"},
		"a volume nobody made":   {"- data:/data", "- date:/data"},
		"a secret nobody made":   {"secrets: [postgres_password]", "secrets: [password]"},
		"a duration of no unit":  {"interval: 30s", "interval: 30 seconds"},
		"an unknown field below": {"start_period: 20s", "start_time: 20s"},
		"a service nobody made":  {"      postgres:\n        condition", "      database:\n        condition"},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("%s: %q is not in the file", name, c[0])
		}
		if _, err := Compose(t.Context(), "..", []byte(bad), variables); err == nil {
			t.Errorf("%s (%q) was accepted", name, c[1])
		}
	}
	if _, err := Compose(t.Context(), "..", []byte(good), nil); err == nil {
		t.Error("the file was accepted without the number of the App")
	}
}

// cluster is what the manifests make.
type cluster struct {
	set       *appsv1.StatefulSet
	services  []*corev1.Service
	budget    *policyv1.PodDisruptionBudget
	config    *corev1.ConfigMap
	secret    *corev1.Secret
	ingress   *networkingv1.Ingress
	network   *networkingv1.NetworkPolicy
	namespace *corev1.Namespace
}

func manifests(t *testing.T) (c cluster) {
	t.Helper()
	files, err := filepath.Glob("../kubernetes/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	for _, file := range files {
		objects, err := Kubernetes([]byte(read(t, file)))
		if err != nil || len(objects) == 0 {
			t.Fatalf("%s: %d objects, %v", file, len(objects), err)
		}
		for _, o := range objects {
			switch o := o.(type) {
			case *appsv1.StatefulSet:
				c.set = o
			case *corev1.Service:
				c.services = append(c.services, o)
			case *policyv1.PodDisruptionBudget:
				c.budget = o
			case *corev1.ConfigMap:
				c.config = o
			case *corev1.Secret:
				c.secret = o
			case *networkingv1.Ingress:
				c.ingress = o
			case *networkingv1.NetworkPolicy:
				c.network = o
			case *corev1.Namespace:
				c.namespace = o
			default:
				t.Errorf("%s: nobody expects a %T", file, o)
			}
		}
	}
	return c
}

func TestTheManifestsFitTogether(t *testing.T) {
	c := manifests(t)
	spec := c.set.Spec.Template.Spec
	pawl := spec.Containers[0]
	labels := c.set.Spec.Template.Labels
	for _, s := range c.services {
		for key, value := range s.Spec.Selector {
			if labels[key] != value {
				t.Errorf("service %s selects %s=%s, pods have %v", s.Name, key, value, labels)
			}
		}
		if s.Spec.Ports[0].TargetPort.String() != pawl.Ports[0].Name {
			t.Errorf("service %s leads to port %s", s.Name, s.Spec.Ports[0].TargetPort.String())
		}
	}
	if c.set.Spec.ServiceName != "pawl-nodes" || *c.set.Spec.Replicas < 2 {
		t.Errorf("service %s, %d replicas", c.set.Spec.ServiceName, *c.set.Spec.Replicas)
	}
	if pause := pawl.Lifecycle.PreStop.Sleep.Seconds; pause < 5 || *spec.TerminationGracePeriodSeconds <= pause+30 {
		t.Errorf("%d s to end, of which %d pass before the server is told; it needs up to 30", *spec.TerminationGracePeriodSeconds, pause)
	}
	if c.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Error("a new version is started beside the old one, whose database it migrates")
	}
	if p := pawl.StartupProbe; p.FailureThreshold*p.PeriodSeconds < 600 {
		t.Errorf("a migration that takes longer than %d s is killed", p.FailureThreshold*p.PeriodSeconds)
	}
	if got := c.budget.Spec.Selector.MatchLabels["app.kubernetes.io/name"]; got != labels["app.kubernetes.io/name"] || c.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the budget is for %q", got)
	}
	if pawl.ReadinessProbe.HTTPGet.Path != "/readyz" || pawl.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Error("a probe asks the wrong page")
	}
	for _, e := range pawl.Env {
		ref := e.ValueFrom.SecretKeyRef
		if _, there := c.secret.StringData[ref.Key]; !there || ref.Name != c.secret.Name {
			t.Errorf("%s: secret %s has no key %s", e.Name, ref.Name, ref.Key)
		}
	}
	volumes := map[string]bool{c.set.Spec.VolumeClaimTemplates[0].Name: true}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range pawl.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("nobody makes volume %s", m.Name)
		}
	}
	to := c.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if to.Name != c.services[0].Name || to.Port.Name != c.services[0].Spec.Ports[0].Name {
		t.Errorf("the ingress leads to %s:%s", to.Name, to.Port.Name)
	}
	for _, o := range []interface{ GetNamespace() string }{c.set, c.services[0], c.services[1], c.budget, c.config, c.secret, c.ingress, c.network} {
		if o.GetNamespace() != c.namespace.Name {
			t.Errorf("%T is in namespace %q", o, o.GetNamespace())
		}
	}
	for key, value := range c.secret.StringData {
		if !strings.HasPrefix(value, "REPLACE: ") {
			t.Errorf("the example of secret key %s holds a value", key)
		}
	}
}

func TestNoPodIsPrivilegedAndTheSandboxCanWork(t *testing.T) {
	spec := manifests(t).set.Spec.Template.Spec
	pod, pawl := spec.SecurityContext, spec.Containers[0].SecurityContext
	if *pawl.Privileged || *pawl.AllowPrivilegeEscalation || !*pawl.ReadOnlyRootFilesystem || !*pod.RunAsNonRoot ||
		len(pawl.Capabilities.Add) > 0 || pawl.Capabilities.Drop[0] != "ALL" || *spec.AutomountServiceAccountToken {
		t.Errorf("pod %+v, container %+v", pod, pawl)
	}
	if pod.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined || pod.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined ||
		*pawl.ProcMount != corev1.UnmaskedProcMount || *spec.HostUsers {
		t.Error("bubblewrap cannot make its namespaces, or the pod's root is the node's")
	}
}

func TestAgentsReachTheInternetAndNotTheCluster(t *testing.T) {
	c := manifests(t)
	policy := c.network.Spec
	if len(policy.PolicyTypes) != 2 || policy.PodSelector.MatchLabels["app.kubernetes.io/name"] != c.set.Spec.Template.Labels["app.kubernetes.io/name"] {
		t.Errorf("the policy is one of %v for %v", policy.PolicyTypes, policy.PodSelector)
	}
	for _, rule := range policy.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) == 0 {
			t.Errorf("anybody may come in by %+v", rule)
		}
	}
	for _, rule := range policy.Egress {
		if len(rule.To) == 0 || len(rule.Ports) == 0 {
			t.Errorf("everything may be reached by %+v", rule)
		}
		for _, to := range rule.To {
			if to.IPBlock == nil || to.IPBlock.CIDR != "0.0.0.0/0" {
				continue
			}
			for _, private := range []string{"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"} {
				if !slices.Contains(to.IPBlock.Except, private) {
					t.Errorf("%s may be reached", private)
				}
			}
		}
	}
}

func TestAWrongManifestIsRefused(t *testing.T) {
	good := read(t, "../kubernetes/statefulset.yaml")
	for name, c := range map[string][2]string{
		"an unknown field":      {"  replicas: 3", "  replica: 3"},
		"a field one too deep":  {"            privileged: false", "            nested: {privileged: false}"},
		"a word for a number":   {"replicas: 3", "replicas: three"},
		"a number for a word":   {"serviceName: pawl-nodes", "serviceName: 7"},
		"a list for an object":  {"matchLabels: {app.kubernetes.io/name: pawl}", "matchLabels: [pawl]"},
		"a field twice":         {"  replicas: 3", "  replicas: 3\n  replicas: 4"},
		"an unknown kind":       {"kind: StatefulSet", "kind: StatefullSet"},
		"a version long gone":   {"apiVersion: apps/v1", "apiVersion: apps/v1beta9"},
		"an amount of no unit":  {"memory: 2Gi", "memory: 2 GB"},
		"another letter's case": {"readOnlyRootFilesystem", "readonlyRootFilesystem"},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("%s: %q is not in the file", name, c[0])
		}
		if _, err := Kubernetes([]byte(bad)); err == nil {
			t.Errorf("%s (%q) was accepted", name, c[1])
		}
	}
	if objects, err := Kubernetes([]byte(good + "\n---\n" + good)); err != nil || len(objects) != 2 {
		t.Errorf("two documents: %d objects, %v", len(objects), err)
	}
}
