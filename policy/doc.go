// Package policy decides what a thread does next. It is pure: no I/O, no clock, no global randomness, no
// goroutines, no GitHub. The same facts give the same decision in the server, in a replay and in a test.
//
// The project's terms:
//
//	thread    one issue or pull request that Pawl works on, owner/repo#n
//	delivery  one webhook request, named by its GUID
//	event     one row of a thread's log: (thread, seq, kind, at, data)
//	activity  what one delivery reports about a thread
//	remark    a text or an act on a thread, not judged yet
//	feedback  a judged remark in the log: it asks for work, is a control or a
//	          question, or was ignored for a reason
//	request   accepted feedback that asks for work
//	run       from the first accepted request to an end
//	attempt   one execution of one backend inside a run
//	backend   an agent CLI with its account, model and effort
//	ending    how the agent CLI ended, read from its stream
//	outcome   the attempt's result, with outside evidence (tree, verifier, log)
//	verdict   one policy's judgement of the attempts, with numbers and reasons
//	decision  the next step with reasons: attempt, wait, stop, done, ask a user
//	rung      one of the four recoveries
//	receipt   the record of an attempt: rungs, outcome, verdicts, tokens, cost
//	signal    one source of a grade (0..1); reward: a grade that passed validation
//	act       a change of the outside world (comment, push, reaction, …), keyed
//	          so that it happens once
//
// An agent's failure is an outcome. A Go error means that Pawl could not do its own job.
//
// Files by topic:
//
//	policy.go                     Facts, Decision, the order of the rules (Next)
//	rule.go, words.go             rules with their texts; endings, actions, sources
//	rules.go, ladder.go           stops, waits, retries, rungs, resumed sessions
//	admit.go, breaker.go          backends, cooldowns, backoff, account breakers
//	choose.go                     the choice among free backends
//	bounds.go, ledger.go          limits per thread, globally, and on review rounds
//	limits.go                     all defaults
//	circles.go, severity.go       edit loops and repeated calls
//	calls.go, testruns.go         calls that wait or run tests
//	stagnation.go, redone.go      repeated attempts, work and feedback
//	outcome.go, receipt.go        an attempt's result and record
//	verification.go, verified.go  the verify commands' results
//	testside.go, evidence.go      test files, and tests without the change
//	answer.go, commands.go        an agent's message; a user's commands
//	steer.go                      texts for a running attempt
//	change.go, host.go            secrets, files for agents, network hosts
//	headroom.go, window.go        use of the accounts' usage windows
//	place.go, watch.go            nodes for attempts; watches of pull requests
package policy
