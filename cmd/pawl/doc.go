// Command pawl is the whole of Pawl: the GitHub App, and the tools that go with it. This room holds flags,
// wiring and one file for each command; what a command does is in the rooms that it calls.
//
//	question                                                     file
//	how is a command found, which exit code has it               main.go
//	where are the parts of a server put together                 serve.go, node.open and begin
//	how does a server end at SIGTERM                             serve.go, node.serve and end
//	how does a server go on with a changed file                  reload.go
//	which pages are served, what makes a server ready            pages.go; when is GitHub out of reach: pages.go, githubHealth
//	who may see the pages, pawl login, at which addresses        access.go
//	what is done every few seconds, hours; which files go        housekeeping.go
//	what is the operator told in a chat                          housekeeping.go, notifier
//	who owns the data directory                                  housekeeping.go, claimData
//	how does the gateway reach out; which program is run_tests   serve.go, newGateway and self
//	how is the log written                                       main.go, logger
//	pawl demo: what is played, by which agent                    demo.go; the agent: demo_agent.sh
//	pawl run: work in a folder without GitHub                    run.go; providers from the environment: run.go, standalone
//	pawl doctor: what is checked                                 doctor.go, doctor_agents.go, doctor_github.go, doctor_repo.go
//	what does a server check of it before it starts              doctor.go, startChecks
//	pawl setup, pawl check: the files of a configuration         setup.go; what setup does: internal/setup
//	pawl inspect, pawl replay: recorded attempts                 inspect.go; how they are read: internal/replay
//	what runs inside of a sandbox, pawl mcp                      walls.go
//	pawl status, and its --export                                status.go; of one thread: terminal.go
//	pawl retry, stop, resume, pause, unpause, close-breaker,
//	deliveries                                                   orders.go; what they do: internal/orders
//	pawl logs                                                    logs.go
//	how work is shown at a terminal                              terminal.go
package main
