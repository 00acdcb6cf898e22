// Stranger plays a new user of Pawl, from an empty root with Debian's /usr, Go and git to the first solved issue. It
// counts commands and seconds: from the sources and with a finished program, by webhook and by polling. make stranger
// runs it.
//
// bubblewrap makes the root (root.go): an empty home, no cache, and only the loopback network with a fake GitHub and
// a provider. The Go module proxy is this machine's module cache. The agent is the Codex of testdata/clis, else a
// script. main.go has the user's commands.
package main
