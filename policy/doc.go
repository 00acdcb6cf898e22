// Package policy decides. It looks at folded facts, a time and limits, and
// returns decisions with their reasons. It is pure: no I/O, no clock, no
// global chance, no goroutines, and it does not know GitHub, so the same facts
// give the same decision in the server, in a replay and in a test.
//
// The words, one per idea, used in the whole project:
//
//	thread    one issue or pull request that Pawl works on, owner/repo#n
//	delivery  one webhook request, named by its GUID
//	event     one row in a thread's log: (thread, seq, kind, at, data)
//	feedback  a remark by somebody else that asks for work; what is not
//	          feedback is stored as ignored, with the reason
//	run       from the first accepted trigger to an ending
//	attempt   one execution of one backend inside a run
//	backend   an agent CLI with its account, model and effort
//	ending    how the agent CLI ended, read from its stream
//	outcome   what the attempt came to, with outside evidence (the tree, the
//	          verifier, the log)
//	verdict   what one policy says of the attempts so far, with numbers and
//	          reasons
//	decision  what to do next: attempt, wait until T, stop, done, ask a person;
//	          always with its reasons
//	rung      one of the four recoveries
//	receipt   the record of an attempt: rungs fired and what they recovered,
//	          outcome, verdicts, tokens, cost, durations
//	signal    one source of a grade; grade: 0..1; reward: a grade that passed
//	          validation
//	act       anything that changes the outside world (comment, check run,
//	          push, pull request, reaction), keyed so that it happens once
//
// An agent's failure is data (an outcome); a Go error means that Pawl could
// not do its own job.
package policy
