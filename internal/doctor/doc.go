// Package doctor checks whether a server could work: its configuration, database, machine, agents and GitHub. A
// check is a row of one table, and its findings say what is wrong and what to do.
//
//	question                                          file
//	which checks are there, in which order            doctor.go, table
//	which of them run at a server's start             start.go
//	database, data directory, git, sandbox, limits    machine.go
//	agents, their versions and logins, providers      agents.go
//	the App, its permissions, webhook, signing key    github.go
//	one repository's file, setup and verify commands  repo.go
//	secrets, ports, inodes                            exposed.go
//	memory, processes and open files of the server    room.go
package doctor
