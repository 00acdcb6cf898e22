package validate

import (
	"os"
	"slices"
	"strings"
	"testing"

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

func TestComposeFileIsValid(t *testing.T) {
	p, err := Compose(t.Context(), "..", []byte(read(t, "../compose.yml")), nil)
	if err != nil {
		t.Fatal(err)
	}
	pawl := p.Services["pawl"]
	if grace := pawl.StopGracePeriod; pawl.HealthCheck == nil || grace == nil || grace.String() != "40s" {
		t.Errorf("health check %v, stop_grace_period %v; Pawl needs up to 30 s", pawl.HealthCheck, grace)
	}
	if len(pawl.Volumes) != 1 || pawl.Volumes[0].Target != "/data" || pawl.Image != "ghcr.io/pawlbot/pawl:"+version(t)+"-codex" {
		t.Errorf("image %s with volumes %v, want one volume at /data", pawl.Image, pawl.Volumes)
	}
	for _, name := range agents(t)[1:] {
		p, err := Compose(t.Context(), "..", []byte(read(t, "../compose.yml")), map[string]string{"PAWL_TAG": "1.2.3-" + name})
		if err != nil || p.Services["pawl"].Image != "ghcr.io/pawlbot/pawl:1.2.3-"+name {
			t.Errorf("agent %s: %v", name, err)
		}
	}
	for _, vendor := range []string{"OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY"} {
		if _, ok := pawl.Environment[vendor]; !ok {
			t.Errorf("%s does not reach the server", vendor)
		}
	}
}

func TestInvalidComposeFilesAreRefused(t *testing.T) {
	good := read(t, "../compose.yml")
	for name, c := range map[string][2]string{
		"an unknown field":         {"restart: unless-stopped", "restarts: unless-stopped"},
		"an unknown top-level key": {"volumes:\n  data:", "volumen:\n  data:"},
		"a wrong type":             {"pids_limit: 9216", "pids_limit: [9216]"},
		"text instead of a number": {"retries: 3", "retries: often"},
		"an undeclared volume":     {"- data:/data", "- date:/data"},
		"an unknown unit of time":  {"interval: 30s", "interval: 30 seconds"},
		"an unknown nested field":  {"start_period: 20s", "start_time: 20s"},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("%s: %q is not in the file", name, c[0])
		}
		if _, err := Compose(t.Context(), "..", []byte(bad), nil); err == nil {
			t.Errorf("%s (%q) was accepted", name, c[1])
		}
	}
}

// cluster holds the objects in the manifests.
type cluster struct {
	set      *appsv1.StatefulSet
	services []*corev1.Service
	budget   *policyv1.PodDisruptionBudget
	ingress  *networkingv1.Ingress
	network  *networkingv1.NetworkPolicy
	workers  []*appsv1.Deployment
	around   *networkingv1.NetworkPolicy // the workers' policy
}

// manifests renders the chart with some values.
func manifests(t *testing.T, values map[string]any) (c cluster) {
	t.Helper()
	objects, err := Kubernetes([]byte(template(t, values)))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range objects {
		switch o := o.(type) {
		case *appsv1.StatefulSet:
			c.set = o
		case *corev1.Service:
			c.services = append(c.services, o)
		case *policyv1.PodDisruptionBudget:
			c.budget = o
		case *networkingv1.Ingress:
			c.ingress = o
		case *networkingv1.NetworkPolicy:
			if o.Name == release+"-workers" {
				c.around = o
			} else {
				c.network = o
			}
		case *appsv1.Deployment:
			c.workers = append(c.workers, o)
		default:
			t.Errorf("unexpected object %T", o)
		}
		if meta, ok := o.(interface{ GetNamespace() string }); !ok || meta.GetNamespace() != release {
			t.Errorf("%T is in another namespace", o)
		}
	}
	return c
}

func TestManifestsFitTogether(t *testing.T) {
	c := manifests(t, map[string]any{"ingress": map[string]any{"host": "pawl.example.com"}})
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
	if c.set.Spec.ServiceName != c.services[1].Name || *c.set.Spec.Replicas != 1 {
		t.Errorf("service %s, %d replicas", c.set.Spec.ServiceName, *c.set.Spec.Replicas)
	}
	if pause := pawl.Lifecycle.PreStop.Sleep.Seconds; pause < 5 || *spec.TerminationGracePeriodSeconds <= pause+30 {
		t.Errorf("the pod gets %d s to end, %d of them before the server's SIGTERM; the server needs up to 30", *spec.TerminationGracePeriodSeconds, pause)
	}
	if c.set.Spec.UpdateStrategy.Type != appsv1.OnDeleteStatefulSetStrategyType {
		t.Error("the update strategy is not OnDelete: a new version would migrate the old version's database")
	}
	if p := pawl.StartupProbe; p.FailureThreshold*p.PeriodSeconds < 600 {
		t.Errorf("the startup probe ends a migration after %d s, want at least 600", p.FailureThreshold*p.PeriodSeconds)
	}
	if got := c.budget.Spec.Selector.MatchLabels["app.kubernetes.io/name"]; got != labels["app.kubernetes.io/name"] || c.budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the disruption budget selects %q", got)
	}
	if !strings.Contains(pawl.ReadinessProbe.Exec.Command[2], "GET /readyz ") || pawl.LivenessProbe.HTTPGet.Path != "/healthz" {
		t.Error("a probe requests the wrong path")
	}
	volumes := map[string]bool{c.set.Spec.VolumeClaimTemplates[0].Name: true}
	for _, v := range spec.Volumes {
		volumes[v.Name] = true
	}
	for _, m := range pawl.VolumeMounts {
		if !volumes[m.Name] {
			t.Errorf("volume %s is not defined", m.Name)
		}
	}
	to := c.ingress.Spec.Rules[0].HTTP.Paths[0].Backend.Service
	if to.Name != c.services[0].Name || to.Port.Name != c.services[0].Spec.Ports[0].Name {
		t.Errorf("the ingress leads to %s:%s", to.Name, to.Port.Name)
	}
}

func TestPodIsUnprivilegedAndItsSandboxWorks(t *testing.T) {
	spec := manifests(t, nil).set.Spec.Template.Spec
	pod, pawl := spec.SecurityContext, spec.Containers[0].SecurityContext
	if *pawl.Privileged || *pawl.AllowPrivilegeEscalation || !*pawl.ReadOnlyRootFilesystem || !*pod.RunAsNonRoot ||
		len(pawl.Capabilities.Add) > 0 || pawl.Capabilities.Drop[0] != "ALL" || *spec.AutomountServiceAccountToken {
		t.Errorf("pod %+v and container %+v have privileges", pod, pawl)
	}
	if pod.SeccompProfile.Type != corev1.SeccompProfileTypeUnconfined || pod.AppArmorProfile.Type != corev1.AppArmorProfileTypeUnconfined ||
		*pawl.ProcMount != corev1.UnmaskedProcMount || *spec.HostUsers {
		t.Error("bubblewrap cannot make its namespaces, or the pod's root is the node's")
	}
}

func TestAgentsReachTheInternetAndNotTheCluster(t *testing.T) {
	c := manifests(t, workersValues(t))
	if len(c.around.Spec.Ingress) > 0 {
		t.Errorf("workers are reachable by %+v", c.around.Spec.Ingress)
	}
	confines(t, c.network.Spec, c.set.Spec.Template.Labels)
	confines(t, c.around.Spec, c.workers[0].Spec.Template.Labels)
}

// privateNetworks lists what a rule for all addresses must exclude. NAT64's prefixes lead to IPv4's private networks.
var privateNetworks = map[string][]string{
	"0.0.0.0/0": {"10.0.0.0/8", "100.64.0.0/10", "169.254.0.0/16", "172.16.0.0/12", "192.168.0.0/16"},
	"::/0":      {"64:ff9b::/96", "64:ff9b:1::/48", "fc00::/7", "fe80::/10"},
}

// confines checks that a policy is for pods with these labels, and that they reach no private network.
func confines(t *testing.T, policy networkingv1.NetworkPolicySpec, labels map[string]string) {
	t.Helper()
	if len(policy.PolicyTypes) != 2 || len(policy.Egress) < 2 {
		t.Errorf("the policy is one of %v with %v", policy.PolicyTypes, policy.Egress)
	}
	if !selects(policy.PodSelector.MatchLabels, labels) {
		t.Errorf("the policy is for %v, not for %v", policy.PodSelector, labels)
	}
	for _, rule := range policy.Ingress {
		if len(rule.From) == 0 || len(rule.Ports) == 0 {
			t.Errorf("the ingress rule %+v has no source or no port", rule)
		}
	}
	for _, rule := range policy.Egress {
		if len(rule.To) == 0 || len(rule.Ports) == 0 {
			t.Errorf("the egress rule %+v has no destination or no port", rule)
		}
		for _, to := range rule.To {
			if to.IPBlock == nil {
				continue
			}
			for _, private := range privateNetworks[to.IPBlock.CIDR] {
				if !slices.Contains(to.IPBlock.Except, private) {
					t.Errorf("agents can reach %s", private)
				}
			}
		}
	}
}

// selects reports whether a selector takes pods with these labels.
func selects(selector, labels map[string]string) bool {
	for key, value := range selector {
		if labels[key] != value {
			return false
		}
	}
	return true
}

func TestInvalidManifestsAreRefused(t *testing.T) {
	good := read(t, plain)
	for name, c := range map[string][2]string{
		"an unknown field":               {"  replicas: 1", "  replica: 1"},
		"a field nested too deep":        {"            privileged: false", "            nested: {privileged: false}"},
		"text instead of a number":       {"replicas: 1", "replicas: three"},
		"a number instead of text":       {"serviceName: pawl-nodes", "serviceName: 7"},
		"a list instead of an object":    {"matchLabels: {app.kubernetes.io/name: pawl, app.kubernetes.io/instance: pawl}", "matchLabels: [pawl]"},
		"a repeated field":               {"  replicas: 1", "  replicas: 1\n  replicas: 4"},
		"an unknown kind":                {"kind: StatefulSet", "kind: StatefullSet"},
		"a removed API version":          {"apiVersion: apps/v1", "apiVersion: apps/v1beta9"},
		"an amount with an unknown unit": {`"memory":"2Gi"`, `"memory":"2 GB"`},
		"a field in the wrong case":      {"readOnlyRootFilesystem", "readonlyRootFilesystem"},
	} {
		bad := strings.Replace(good, c[0], c[1], 1)
		if bad == good {
			t.Errorf("%s: %q is not in the file", name, c[0])
		}
		if _, err := Kubernetes([]byte(bad)); err == nil {
			t.Errorf("%s (%q) was accepted", name, c[1])
		}
	}
	if objects, err := Kubernetes([]byte(good + "\n---\n" + good)); err != nil || len(objects)%2 != 0 {
		t.Errorf("two documents: %d objects, %v", len(objects), err)
	}
}
