// Command pawl is the whole of Pawl: the GitHub App, and the tools that go with it. This room holds flags and
// one file for each command; what a command does is in the rooms that it calls.
//
//	question                                                     file
//	how is a command found, which exit code has it               main.go
//	pawl serve                                                   serve.go; the server: internal/server
//	pawl login                                                   login.go
//	how is the log written                                       main.go, logger
//	pawl demo: what is played, by which agent                    demo.go; the agent: demo_agent.sh
//	pawl run: work in a folder without GitHub                    run.go; what it does: internal/local
//	pawl doctor                                                  doctor.go; its checks: internal/doctor
//	pawl setup, pawl check: the files of a configuration         setup.go; what setup does: internal/setup
//	pawl inspect, pawl replay: recorded attempts                 inspect.go, replay.go; internal/inspect, internal/replay
//	what runs inside of a sandbox, pawl mcp                      walls.go
//	pawl status, and its --export                                status.go; of one thread: terminal.go
//	commands of policy.Commands, close-breaker, deliveries       orders.go; what they do: internal/commands
//	pawl logs                                                    logs.go
//	how work is shown at a terminal                              terminal.go
package main
