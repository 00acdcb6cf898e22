// Package replay plays recorded attempts back through policy: what would have been
// decided after each, where policy would have stopped, and what that saves.
//
//	question                                            file
//	what are the options, and what is printed            report.go
//	how is the kind of a recording found out             input.go
//	how is a trail (pawl status --export) read           input.go
//	how is the log of a wrapper that restarts read       wrapper.go, stream.go
//	how do transcripts become attempts                   recorder.go
//	what is kept of a run until its end is known         recorder.go, recording.run
//	where is policy run, and which records count         core.go
//	what do the tables that threads share hold           core.go, shared
package replay
