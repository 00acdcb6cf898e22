// Package validate checks config/deploy: the compose file by the loader of the Compose Specification, the chart by
// Helm, and the chart's manifests by the types of the Kubernetes API. It is a module of its own, so that Pawl does
// not depend on Kubernetes.
package validate
