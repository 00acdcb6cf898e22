// Package server assembles a server and runs it: webhooks, queue, solver and pages. The clock is a parameter, so
// that a test can move it. pawl serve and pawl demo run a server, and so do tests in their own process.
//
//	question                                              file
//	where are the parts of a server connected             parts.go, Server.open and begin
//	how does a server end at SIGTERM                      server.go, Server.serve and end
//	how does a server follow its configuration file       reload.go
//	which pages are served, what makes a server ready     pages.go
//	who may see the pages, at which addresses             access.go
//	is GitHub out of reach; where do webhooks come from   github.go
//	what runs every few seconds, every hour               housekeeping.go
//	who owns the data directory                           data.go
//	what does the operator read in a chat                 notify.go
//	how is the sandbox opened, what of CLIs does it show  sandbox.go
package server
