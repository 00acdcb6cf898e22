// Command bench measures the built program against a fake GitHub on loopback, and prints a table: what, measured, aim,
// met. A missed aim is only a line in the table; an impossible measurement is an error. `make bench` runs it. An
// argument names one section to run alone (start, memory, webhooks, agent, calls, streams, proxy, ratios, ignored,
// growth, steps, takeover, scale, ground, walls).
//
//	main.go      the sections and the table
//	rig.go       the server, and an issue to solve
//	memory.go    start, memory: time to ready, idle memory
//	growth.go    growth: memory and delays with many waiting threads
//	agent.go     agent, calls: from webhook to agent, requests of an issue
//	streams.go   streams: a large transcript
//	proxy.go     proxy: the gateway next to a plain proxy
//	webhooks.go  webhooks, ignored: answers under load, cost of a comment
//	ratios.go    ratios: a dispatcher, Probot, HMAC, the regexps
//	steps.go     steps: steps per second on SQLite and PostgreSQL
//	takeover.go  takeover: interruption after a kill
//	scale.go     scale: 5,000 repositories with 50,000 waiting threads
//	ground.go    ground: attempts next to the same commands by hand
//	walls.go     walls: start with an own network
package main
