// Command bench measures the built program with a fake GitHub on loopback, and prints a table: what was measured, the
// result, the aim, and whether the aim was met. A missed aim is only a line in the table. A measurement that fails is an
// error. `make bench` runs it. An argument names one section to run alone.
//
//	file         sections           measured
//	main.go                         (the sections and the table)
//	rig.go                          (the server, and an issue to solve)
//	memory.go    start, memory      the time to ready, idle memory
//	growth.go    growth             memory and delays with many waiting threads
//	agent.go     agent, calls       the time from webhook to agent, requests for an issue
//	streams.go   streams            reading a large transcript
//	proxy.go     proxy              the gateway, compared with a plain proxy
//	webhooks.go  webhooks, ignored  answers under load, the cost of a comment that is not for Pawl
//	ratios.go    ratios             Pawl, compared with a dispatcher, Probot, HMAC and regexps
//	steps.go     steps              steps per second on PostgreSQL
//	takeover.go  takeover           the interruption after a kill
//	warm.go      warm               attempts that begin where the repository's caches are
//	scale.go     scale              5,000 repositories with 50,000 waiting threads
//	nodes.go, node.go  nodes        50 simulated nodes with 5,000 repositories on one PostgreSQL
//	ground.go    ground             attempts, compared with the same commands by hand
//	walls.go     walls              a program's start with its own network
package main
