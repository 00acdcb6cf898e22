// Package agent starts coding-agent CLIs and parses their output.
//
// An [Adapter] describes one CLI: how a [Request] becomes a [Command], and how one line of output becomes events.
// Both are pure functions. Each CLI has a folder below this one, and clis.For chooses. [Run] reads a running
// process through an adapter and [Inspect] reads a recorded transcript; both end in the same [Report].
//
// A report comes from structure: event types, error fields, the session file. Tools' output, reasoning and files
// can mention a limit that the agent did not meet; that counts as a mention and decides nothing.
//
//	where is an ending decided                       conclude.go  tally.decide
//	of a program without structure in its output     plain.go     decidePlain
//	what corrects it afterwards                      session.go   Report.Refine
//	where is Claude's limit read                     claude/claude.go    readLimit, endingOf
//	where is Codex's                                 codex/codex.go, codex/session.go
//	where are wordings, resets, the 8 days           ../limit, see its doc.go
//	how is each CLI started                          codex/codex.go, claude/claude.go, …
//	what is the same of them all                     adapter.go   Adapter.Command
//	which kind of backend is which adapter           clis/clis.go, ../../config/clis.go
//	what of the environment reaches a CLI            adapter.go   Request.Allowed
//	which bounds end a run that goes on              run.go       RunOptions, newWatch
//	when is a CLI killed because it waits            run.go       watch.tellTry
//	how long may a line be, what is kept of output   stream.go
//	how is a line read as JSON, a cut one too        event.go     Line
//	when does a call count, and when twice           tally.go
//	what makes two edits the same                    edit/edits.go
//	what makes two failures the same                 edit/edits.go
//	what did the agent itself write                  event.go     Event.Authored
//	does a remark consist of that                    ../../policy/feedback/authored.go
package agent
