package server

import (
	"fmt"
	"io/fs"
	"os"
)

// PodError is why sandbox.mode pod is refused.
type PodError struct{ problem, do string }

func (e *PodError) Error() string   { return e.problem + "; " + e.do }
func (e *PodError) Problem() string { return e.problem }
func (e *PodError) Hint() string    { return e.do }

// apiHost is the variable that the kubelet sets in every container, also with enableServiceLinks: false.
const apiHost = "KUBERNETES_SERVICE_HOST"

// serviceAccountTokens are the paths of Kubernetes' own tokens, and of those that clouds add.
var serviceAccountTokens = []string{
	"var/run/secrets/*/serviceaccount/token",
	"var/run/secrets/azure/tokens/*",
}

// checkPod refuses sandbox.mode pod outside of a pod, and in one that holds a credential of the cluster. The variable
// guards against mistakes only: an operator can set it anywhere.
func checkPod(root fs.FS, lookup func(string) (string, bool)) error {
	if host, _ := lookup(apiHost); host == "" {
		return &PodError{
			"sandbox.mode is pod, but this process is not in a Kubernetes pod: the variable " + apiHost + " is missing",
			"set sandbox.mode to auto, or deploy the workers of config/deploy/helm",
		}
	}
	for _, pattern := range serviceAccountTokens {
		found, err := fs.Glob(root, pattern)
		if err != nil {
			return fmt.Errorf("look for service account tokens: %w", err)
		}
		if len(found) > 0 {
			return &PodError{
				"sandbox.mode is pod, but agents could read the service account token /" + found[0],
				"set automountServiceAccountToken: false in the pod's specification, and remove cloud identities from its service account",
			}
		}
	}
	return nil
}

// inPod is checkPod for this process.
func inPod() error { return checkPod(os.DirFS("/"), os.LookupEnv) }
