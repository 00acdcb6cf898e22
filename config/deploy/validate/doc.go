// Package validate checks config/deploy: the compose file with the Compose Specification's loader, the chart with
// Helm, and the chart's manifests with the Kubernetes API's types. It is a module of its own, so that Pawl does
// not depend on Kubernetes.
package validate
