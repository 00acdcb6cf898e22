// Package replay plays recorded attempts back through policy. It reports the decision after each attempt, where policy
// would have stopped, and the savings.
//
//	report.go              options and output
//	input.go               kinds of recordings; trails (pawl status --export)
//	wrapper.go, stream.go  logs of wrappers that restart an agent
//	recorder.go            attempts from transcripts
//	core.go                policy's run; the state that threads share
package replay
