// Package server assembles a server and runs it: webhooks, queue, solver and pages. The clock is a parameter, so
// that a test can move it. pawl serve and pawl demo run a server, and so do tests in their own process.
//
//	assembly of a server                          parts.go, Server.open and begin
//	stopping at SIGTERM                           server.go, Server.serve and end
//	reloading the configuration file              reload.go
//	pages and readiness checks                    pages.go
//	access to the pages, and their address        access.go
//	GitHub's health and webhook addresses         github.go
//	sweeps and periodic cleaning                  housekeeping.go
//	locks on the data directory                   data.go
//	chat alerts                                   notify.go
//	opening the sandbox, CLI files visible in it  sandbox.go
package server
