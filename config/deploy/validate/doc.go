// Package validate checks config/deploy: the compose file against the schema of
// the Compose Specification, the Kubernetes manifests against the types of the
// Kubernetes API, and the Pawl configurations in both against Pawl's own rules.
// It is a module of its own, so that Pawl does not depend on Kubernetes.
package validate
