// Package doctor checks whether a server could work: its configuration, database, machine, agents and GitHub. A
// check is a row of one table, and its findings say what is wrong and what to do.
//
//	question                                          file
//	which checks are there, in which order            doctor.go, table
//	which of them does a server need to start         start.go
//	database, data directory, git, sandbox, limits    machine.go
//	agents, their versions and logins, providers      agents.go
//	the App, its permissions, webhook, signing key    github.go
//	one repository's file, setup and verify commands  repo.go
package doctor
