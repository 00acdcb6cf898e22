// Stranger plays a new user of Pawl up to the first solved issue. It begins with an empty root file system that has
// only Debian's /usr, Go and git. It counts the commands and measures the time: from the sources and with a built
// program, with webhooks and with polling. make stranger runs it.
//
// bubblewrap creates the root (root.go): an empty home, no cache, and only the loopback network with a fake GitHub and a
// provider. The Go module proxy is this machine's module cache. The agent is the Codex of testdata/clis, or a script if
// Codex is not installed. main.go has the user's commands.
package main
