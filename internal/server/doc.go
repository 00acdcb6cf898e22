// Package server assembles a server and runs it: webhooks, queue, solver and pages. The clock is a parameter, so
// that a test can move it. pawl serve and pawl demo run a server, and so do tests in their own process.
//
//	assembly of a server                          parts.go, Server.open and begin
//	end at SIGTERM                                server.go, Server.serve and end
//	reloading the configuration file              reload.go
//	pages, and the checks of readiness            pages.go
//	access to the pages, and their addresses      access.go
//	health of GitHub, webhook addresses           github.go
//	work every few seconds and every hour         housekeeping.go
//	locks on the data directory                   data.go
//	chat alerts                                   notify.go
//	opening the sandbox, visible CLI files        sandbox.go
package server
