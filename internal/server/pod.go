package server

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
)

// PodError says why Pawl refuses sandbox.mode pod.
type PodError struct{ problem, do string }

func (e *PodError) Error() string   { return e.problem + "; " + e.do }
func (e *PodError) Problem() string { return e.problem }
func (e *PodError) Hint() string    { return e.do }

// apiHost is the variable that the kubelet sets in every container, even with enableServiceLinks: false.
const apiHost = "KUBERNETES_SERVICE_HOST"

// tokenFolders hold tokens of Kubernetes and cloud providers. part is in the name of every token file: a serviceaccount
// folder also holds a certificate and the namespace.
var tokenFolders = []struct{ pattern, part string }{
	{"var/run/secrets/*/serviceaccount", "token"},
	{"var/run/secrets/*/tokens", ""},
	{"var/run/secrets/tokens", ""},
}

// tokenVariables are set by cloud providers' admission webhooks, and name token files.
var tokenVariables = []string{
	"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
	"AWS_WEB_IDENTITY_TOKEN_FILE",
	"AZURE_FEDERATED_TOKEN_FILE",
}

// checkPod refuses sandbox.mode pod outside a pod, and in a pod that holds a cluster credential. The variable apiHost
// only guards against mistakes: an operator can set it anywhere.
func checkPod(root fs.FS, lookup func(string) (string, bool)) error {
	if host, _ := lookup(apiHost); host == "" {
		return &PodError{
			"sandbox.mode is pod, but this process is not in a Kubernetes pod: the variable " + apiHost + " is missing",
			"set sandbox.mode to auto, or deploy the workers of config/deploy/helm",
		}
	}
	token, err := findToken(root, lookup)
	if err != nil {
		return fmt.Errorf("look for service account tokens: %w", err)
	}
	if token == "" {
		return nil
	}
	return &PodError{
		"sandbox.mode is pod, but agents could read the service account token /" + token,
		"set automountServiceAccountToken: false in the pod's specification, and remove cloud identities from its service account",
	}
}

// findToken returns the path of a service account token, or empty.
func findToken(root fs.FS, lookup func(string) (string, bool)) (string, error) {
	for _, folder := range tokenFolders {
		found, err := fs.Glob(root, folder.pattern)
		if err != nil {
			return "", err
		}
		for _, dir := range found {
			token, err := findFile(root, dir, folder.part)
			if token != "" || err != nil {
				return token, err
			}
		}
	}
	for _, name := range tokenVariables {
		file, _ := lookup(name)
		file = strings.TrimPrefix(path.Clean(file), "/")
		info, err := fs.Stat(root, file)
		if err == nil && !info.IsDir() {
			return file, nil
		}
	}
	return "", nil
}

// findFile returns the path of a file below dir whose name contains part, or empty. The kubelet stores files in folders
// such as ..2026_11_29, and links to them. findFile returns the last match, which is the link that users know.
func findFile(root fs.FS, dir, part string) (found string, err error) {
	err = fs.WalkDir(root, dir, func(file string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrPermission) {
			return nil // just replaced by the kubelet, or unreadable for agents, too
		}
		if err != nil {
			return err
		}
		isFile := !entry.IsDir() && entry.Name() != "..data"
		if isFile && strings.Contains(strings.ToLower(entry.Name()), part) {
			found = file
		}
		return nil
	})
	return found, err
}

// inPod runs checkPod for this process.
func inPod() error { return checkPod(os.DirFS("/"), os.LookupEnv) }
