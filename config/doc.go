// Package config reads Pawl's server configuration and the per-repository .github/pawl.yml.
//
// Defaults come first, the file is decoded strictly over them, and what results is validated. Reading goes on
// after an error, so one pass reports everything that is wrong, each with file, line, key, what is wrong and
// what to do.
//
// Values in the server configuration may hold ${NAME}, which is replaced by the environment variable of that
// name; one that is not set is an error, and $${ stands for a literal ${. That happens after the YAML is
// parsed, so a value cannot add keys. The repository's file is never expanded: it must not read the server's
// environment.
//
// The decoding over the library's nodes is our own. goccy/go-yaml 1.19, which was tried, stops at the first
// problem, names types of Go and reads the secret 0123 as 83. Anchors, aliases, tags and more than one document
// are refused; no Pawl configuration needs them.
//
// Where what is decided:
//
//	which key is called what, with which default?    server.go, backend.go, policy.go
//	what does each key mean to a user?               reference.yml, of which the schemas and docs/configuration.md are made
//	where do the 300 s and the thresholds stand?     ../policy/limits.go, which Policy embeds
//	where are the keys of server, environment?       http.go, environment.go
//	which value is refused, and in which words?      validate… in the file of its struct, such as server.go
//	how does a YAML node become a value?             decode.go
//	how is ${NAME} replaced?                         decode.go, expand
//	which line does a problem name?                  load.go, source
//	from where do relative paths start?              load.go, resolve
//	what may a repository's file change?             repo.go, Narrow
//	what may programs reach over the network?        network.go, ../policy/host.go
//	what do the models of vendors cost?              models.go, models.json
//	what takes a restart, which keys changed?        reload.go
//	which paths may no attempt change?               repo.go, Protects
//	why does a log not show the key?                 secret.go
package config
