package validate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// release is the name of the chart's release and of its namespace.
const release = "pawl"

// kubernetes is the oldest version that the chart supports.
var kubernetes = common.KubeVersion{Version: "v1.33.0", Major: "1", Minor: "33"}

// Lint runs helm lint --strict and returns its complaints.
func Lint(folder string, values map[string]any) error {
	var found []error
	for _, m := range lint.RunAll(folder, values, release, lint.WithKubeVersion(&kubernetes)).Messages {
		if m.Severity > support.InfoSev {
			found = append(found, m)
		}
	}
	return errors.Join(found...)
}

// Template runs helm template. It returns the chart's manifests for the values, sorted by name, and the chart's notes.
func Template(folder string, values map[string]any) (manifests, notes string, err error) {
	chart, err := loader.Load(folder)
	if err != nil {
		return "", "", err
	}
	capabilities := *common.DefaultCapabilities
	capabilities.KubeVersion = kubernetes
	all, err := util.ToRenderValues(chart, values, common.ReleaseOptions{Name: release, Namespace: release, IsInstall: true, Revision: 1}, &capabilities)
	if err != nil {
		return "", "", err
	}
	files, err := engine.Engine{Strict: true}.Render(chart, all)
	if err != nil {
		return "", "", err
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(files)) {
		switch text := strings.TrimSpace(files[name]); {
		case strings.HasSuffix(name, "NOTES.txt"):
			notes = text
		case strings.HasSuffix(name, ".yaml") && text != "":
			parts = append(parts, text+"\n")
		}
	}
	if len(parts) == 0 {
		return "", "", fmt.Errorf("%s renders no manifests", folder)
	}
	return strings.Join(parts, "---\n"), notes, nil
}
