// Command pawl is the GitHub App Pawl and its command-line tools. This package parses flags and prints results; the
// packages that it calls do the work.
//
//	commands and exit codes, the log's format      main.go
//	serve                                          serve.go; internal/server
//	login                                          login.go
//	demo                                           demo.go; its agent: demo_agent.sh
//	run                                            run.go; internal/local
//	doctor                                         doctor.go; internal/doctor
//	setup, check                                   setup.go; internal/setup, config
//	inspect, replay                                inspect.go, replay.go; internal/inspect, internal/replay
//	mcp, and the sandbox's first process           mcp.go; internal/testtool, internal/sandbox
//	status                                         status.go; one thread: terminal.go
//	policy.Commands, close-breaker, deliveries     commands.go; internal/commands
//	logs                                           logs.go
//	output at a terminal                           terminal.go
package main
