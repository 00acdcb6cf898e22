// Command bench measures the built program from outside, against a fake GitHub
// on loopback, and prints one table: what, measured, aim, met. It judges
// nothing: a missed aim is a line in the table, and only a measurement that could
// not be made is an error. `make bench` runs it; an argument names one section
// to run alone (start, memory, webhooks, agent, calls, streams, proxy, ratios, ignored,
// growth, steps, takeover, scale, ground, walls).
//
// Where to look:
//
//	Which sections are there, and how is the table printed?  main.go
//	How is a server started, and an issue solved?            rig.go
//	start, memory: time to ready, memory when idle           memory.go
//	growth: memory and punctuality with many waiting threads growth.go
//	agent, calls: from webhook to agent, calls of an issue   agent.go
//	streams: a large transcript of an agent                  streams.go
//	proxy: what the gateway adds, beside a plain proxy       proxy.go
//	webhooks, ignored: answers under load, cost of a comment webhooks.go
//	ratios: against a dispatcher, Probot, HMAC, the regexps  ratios.go
//	steps: steps a second, on SQLite and PostgreSQL          steps.go
//	takeover: how long nobody goes on after a kill           takeover.go
//	scale: 5,000 repositories with 50,000 waiting threads    scale.go
//	ground: attempts beside the same commands by hand        ground.go
//	walls: what a network of its own costs at the start      walls.go
package main
