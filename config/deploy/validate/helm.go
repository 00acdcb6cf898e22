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

// release is what the chart is installed as, in the namespace of the same name.
const release = "pawl"

// kubernetes is the oldest version that the chart takes.
var kubernetes = common.KubeVersion{Version: "v1.33.0", Major: "1", Minor: "33"}

// Lint is helm lint --strict: the first thing that it complains about.
func Lint(folder string, values map[string]any) error {
	var found []error
	for _, m := range lint.RunAll(folder, values, release, lint.WithKubeVersion(&kubernetes)).Messages {
		if m.Severity > support.InfoSev {
			found = append(found, m)
		}
	}
	return errors.Join(found...)
}

// Template is helm template: the chart's manifests with these values, by the order of their names, and its notes.
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
		return "", "", fmt.Errorf("%s makes nothing", folder)
	}
	return strings.Join(parts, "---\n"), notes, nil
}
