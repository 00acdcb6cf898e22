// Package config reads Pawl's server configuration and the per-repository .github/pawl.yml.
//
// It decodes a file strictly over the defaults and validates the result. One pass reports every problem with
// file, line, key and remedy.
//
// In the server's file, ${NAME} is replaced by an environment variable after the YAML is parsed, so a value cannot
// add keys. The repository's file is never expanded: it must not read the server's environment.
//
// Pawl decodes YAML nodes itself, because libraries stop at the first problem and read the secret 0123 as 83.
//
//	what does each key mean?                         reference.yml; the schemas and docs/configuration.md are made of it
//	which keys and defaults are there?               server.go, backend.go, policy.go, http.go, environment.go, repo.go
//	where are the limits of policy?                  ../policy/limits.go, which Policy embeds
//	which value is refused, with which message?      validate… in the file of its struct
//	how does a YAML node become a value?             decode.go
//	how is ${NAME} replaced?                         decode.go, expand
//	which line does a problem name?                  load.go, source
//	where do relative paths start?                   load.go, resolve
//	what can a repository's file change?             repo.go, Narrow
//	which hosts can programs reach?                  network.go, ../policy/host.go
//	what do models cost?                             models.go, models.json
//	which change takes a restart?                    reload.go
//	which paths are protected?                       repo.go, Protects
//	how are secrets kept out of logs?                secret.go
package config
