// Package validate checks config/deploy with the tools' own code: the Compose Specification's loader, Helm, the
// Kubernetes API's types, and the library of the Pod Security Standards. KEDA's schema checks keda.yaml. The package is
// a separate module, so that Pawl does not depend on Kubernetes.
package validate
