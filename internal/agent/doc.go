// Package agent starts coding-agent CLIs and reads what they print.
//
// An [Adapter] is what Pawl knows of one CLI: how a [Request] becomes a
// [Command], and how one line of output becomes events. Both are pure
// functions. [Run] reads one running process through them and [Inspect] reads
// a recorded transcript; both end in the same [Report].
//
// A report is read from structure: event types, error fields, the session
// file. Text that tools printed, that the model thought or that files contain
// can mention a limit without the agent having met one; it is counted as a
// mention and decides nothing.
package agent
