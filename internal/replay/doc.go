// Package replay plays recorded attempts back through policy: the decision after each, where policy would have
// stopped, and the savings.
//
//	question                                            file
//	what are the options, and what is printed            report.go
//	how is a recording's kind recognised                 input.go
//	how is a trail (pawl status --export) read           input.go
//	how is the log of a wrapper that restarts read       wrapper.go, stream.go
//	how do transcripts become attempts                   recorder.go
//	what is kept of a run until its end is known         recorder.go, recording.run
//	where is policy run, and which records count         core.go
//	what is in the state that threads share              core.go, shared
package replay
