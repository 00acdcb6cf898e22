// Package doctor checks whether a server could work: its configuration, database, machine, agents and GitHub. A
// check is a row of one table, and its findings say what is wrong and what to do.
//
//	doctor.go   the table of checks
//	start.go    the checks at a server's start
//	machine.go  database, data directory, git, sandbox, limits
//	agents.go   agents, their versions and logins, providers
//	github.go   the App, its permissions, webhook, signing key
//	repo.go     a repository's file, setup and verify commands
//	exposed.go  secrets, ports, inodes
//	room.go     memory, processes and open files of the server
package doctor
