// Stranger plays somebody who has never seen Pawl, from an empty root with Debian's /usr, Go and git to the first
// solved issue, and counts commands and seconds: from the sources and with a finished program, by webhook and by
// polling. make stranger runs it.
//
// The root is bubblewrap's: an empty home, no cache, no network but the loopback, on which a fake GitHub and a
// provider answer. What a stranger would load from the Go module proxy comes from this machine's module cache; the
// agent is the Codex of testdata/clis, or a script in its place where that is not installed.
//
//	question                                          file
//	what does the root consist of                     root.go
//	what does the stranger type, and what is counted  main.go
package main
