// Package config reads Pawl's server configuration and the per-repository .github/pawl.yml.
//
// It decodes a file strictly over the defaults and reports all problems with file, line, key and remedy. In the server's
// file ${NAME} is replaced after the YAML is parsed, so a value cannot add keys. The repository's file is never expanded.
//
// Pawl decodes YAML nodes itself, because libraries stop at the first problem and read the secret 0123 as 83.
//
//	reference.yml          the meaning of each key; source of the schemas and docs/configuration.md
//	server.go, backend.go, policy.go, http.go, environment.go   keys, defaults and validation
//	../policy/limits.go    limits of policy, embedded in Policy
//	decode.go, load.go     YAML nodes, ${NAME}; lines of problems, relative paths
//	repo.go                what a repository can change (Narrow); protected paths
//	network.go, ../policy/host.go   hosts
//	models.go, models.json prices of models
//	reload.go, secret.go   changes that need a restart; secrets in logs
package config
