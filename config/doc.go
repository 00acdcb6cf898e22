// Package config reads Pawl's server configuration and the per-repository
// .github/pawl.yml.
//
// Defaults come first, the file is decoded strictly over them, and what results
// is validated. Reading goes on after an error, so one pass reports everything
// that is wrong, each with file, line, key, what is wrong and what to do.
//
// Values in the server configuration may hold ${NAME}, which is replaced by the
// environment variable of that name; a variable that is not set is an error, and
// $${ stands for a literal ${. The replacement happens after the YAML is parsed,
// so a value cannot add keys. The repository's file is never expanded: it is
// written by others and must not read the server's environment.
//
// Anchors, aliases, tags and more than one document are refused; no Pawl
// configuration needs them.
package config
