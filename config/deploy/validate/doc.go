// Package validate checks config/deploy: the compose file with the Compose Specification's loader, the chart with
// Helm, the manifests with the Kubernetes API's types, pods with the library of the Pod Security Standards, and
// keda.yaml with KEDA's schema. It is a module of its own, so that Pawl does not depend on Kubernetes.
package validate
