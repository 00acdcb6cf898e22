package doctor

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
)

func (e *exam) inPod() bool { return e.cfg.Sandbox.Mode == config.SandboxPod }

// pod reports secrets in files, which agents can read. The server hides secrets in its environment from agents.
func (e *exam) pod() (all []Finding) {
	const agentsRead = "sandbox.mode is pod: agents can read "
	app := e.cfg.GitHub.App
	if app.PrivateKeyFile != "" {
		all = append(all, warning(
			agentsRead+"github.app.private_key_file",
			"write github.app.private_key: ${PAWL_PRIVATE_KEY} instead, and set that variable from a Kubernetes Secret",
		)...)
	}
	if app.SigningKeyFile != "" {
		all = append(all, warning(agentsRead+"github.app.signing_key_file", "remove it; this server then does not sign commits")...)
	}
	if e.cfg.Gateway.KeyFile != "" {
		all = append(all, warning(agentsRead+"gateway.key_file", "move gateway.address to a server that runs no agents")...)
	}
	if keys := e.cfg.LiteralSecrets(); len(keys) > 0 {
		all = append(all, warning(
			agentsRead+strings.Join(keys, ", ")+" in the configuration file",
			"write ${NAME} for each, and set the variable from a Kubernetes Secret",
		)...)
	}
	if os.Getpid() != 1 && holdsEnvironment(1) {
		all = append(all, warning(
			agentsRead+"the variables of the pod's first process, which hold Pawl's secrets",
			"start the container with command: [pawl] and the pod with shareProcessNamespace: true, as config/deploy/helm does",
		)...)
	}
	return append(all, ok("sandbox.mode is pod: the pod is the sandbox, which this pod's later attempts share")...)
}

// holdsEnvironment reports whether this user can read a process's variables and they come from a container. An init
// such as tini gets the same variables as Pawl, but does not hide them.
func holdsEnvironment(pid int) bool {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	return err == nil && bytes.Contains(text, []byte("KUBERNETES_SERVICE_HOST="))
}

// dialTime limits the call to the Kubernetes API. A network policy drops packets, so a blocked call takes this long.
const dialTime = 3 * time.Second

// podNetwork warns if agents reach the Kubernetes API. Then no network policy is in force, or it allows the API.
func (e *exam) podNetwork(ctx context.Context) []Finding {
	address := net.JoinHostPort(os.Getenv("KUBERNETES_SERVICE_HOST"), cmp.Or(os.Getenv("KUBERNETES_SERVICE_PORT"), "443"))
	dialer := net.Dialer{Timeout: dialTime}
	connection, err := dialer.DialContext(ctx, "tcp", address)
	if err == nil {
		_ = connection.Close() // only a test
	}
	return reaches(address, err)
}

// reaches judges a call to the Kubernetes API. A refusal proves nothing: the API's machine may have sent it.
func reaches(address string, err error) []Finding {
	if err == nil {
		return warning(
			"sandbox.mode is pod, but agents reach the Kubernetes API at "+address,
			"apply the chart's NetworkPolicy in a cluster whose network enforces policies; if one is in force, it allows the API's public address: "+
				"add that address (kubectl get endpointslices -n default) to the policy's except",
		)
	}
	if failure, is := errors.AsType[net.Error](err); is && failure.Timeout() {
		return ok("agents do not reach the Kubernetes API at " + address)
	}
	return warning(
		fmt.Sprintf("whether agents reach the Kubernetes API at %s is unknown: %v", address, err),
		"a network policy usually drops such calls without an answer; check that the cluster's network enforces the chart's NetworkPolicy",
	)
}
