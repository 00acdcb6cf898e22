// Package agent starts coding-agent CLIs and parses their output.
//
// An [Adapter] describes one CLI: how a [Request] becomes a [Command], and how one line of output becomes events. Both
// are pure functions. Each CLI has its own subfolder; clis.For returns its adapter. [Run] reads a running process,
// [Inspect] a recorded transcript; both return a [Report].
//
// A report relies on structure: event types, error fields, the session file. Mere mentions of limits in tool output,
// reasoning or files decide nothing.
//
//	adapter.go     the CLI's process: arguments, environment, files
//	run.go         a run's limits, kills and a CLI's waits
//	stream.go      lines, transcripts, truncated output
//	event.go       events, reports, JSON lines
//	tally.go       which calls count
//	conclude.go    the ending (tally.decide); plain.go: without structure
//	session.go     corrections by the session file (Report.Refine)
//	background.go  tasks that the agent left running
//	edit/edits.go  equal edits and equal failures
//	clis/clis.go   adapters by backend kind
//	../limit       wordings of limits, and resets
package agent
