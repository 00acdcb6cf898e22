// Package policy decides. It looks at folded facts, a time and limits, and returns decisions with their
// reasons. It is pure: no I/O, no clock, no global chance, no goroutines, and it does not know GitHub, so the
// same facts give the same decision in the server, in a replay and in a test.
//
// The words, one per idea, used in the whole project:
//
//	thread    one issue or pull request that Pawl works on, owner/repo#n
//	delivery  one webhook request, named by its GUID
//	event     one row in a thread's log: (thread, seq, kind, at, data)
//	activity  what one delivery tells about a thread
//	remark    a text or an act there, not judged yet
//	feedback  a remark as the log holds it; the event's kind tells whether it
//	          asks for work, is a control or a question, or was ignored, with
//	          the reason
//	request   accepted feedback: it asks for work
//	run       from the first accepted request to an ending
//	attempt   one execution of one backend inside a run
//	backend   an agent CLI with its account, model and effort
//	ending    how the agent CLI ended, read from its stream
//	outcome   what the attempt came to, with outside evidence (the tree, the
//	          verifier, the log)
//	verdict   what one policy says of the attempts so far, with numbers and
//	          reasons
//	decision  what to do next: attempt, wait until T, stop, done, ask a user;
//	          always with its reasons
//	rung      one of the four recoveries
//	receipt   the record of an attempt: rungs fired and what they recovered,
//	          outcome, verdicts, tokens, cost, durations
//	signal    one source of a grade; grade: 0..1; reward: a grade that passed
//	          validation
//	act       anything that changes the outside world (comment, check run,
//	          push, pull request, reaction), keyed so that it happens once
//
// An agent's failure is data (an outcome); a Go error means that Pawl could not do its own job.
//
// Below it: feedback says whether a remark asks for work, learning what an attempt
// is worth and which backend to take, simhash which texts are alike.
//
//	question                                                          file
//	which rules are there, and which one speaks first                 policy.go, Next
//	what may a decision depend on, what does it hold                  policy.go, Facts and Decision
//	when does a run stop, wait for a reset, or count as done          rules.go
//	how many attempts of a thread may there be, without a user        bounds.go
//	when do rounds of review lead nowhere                             bounds.go
//	what may be spent                                                 bounds.go
//	when does a chain of Pawl's own work end                          ledger.go
//	what may all threads together do and spend in a day               ledger.go
//	how often do failing checks of others ask again                   bounds.go
//	where do the 300 s and all other defaults stand                   limits.go, Defaults
//	how long is waited between two attempts                           admit.go, backoff; breaker.go, Backoff
//	what keeps a backend from an attempt that was asked for           admit.go
//	what is waited out that the provider refuses for the moment        rules.go, transient
//	what follows an agent that hung, and an interruption              ladder.go, silence
//	when is an account asked nothing before its reset                 breaker.go
//	when are edits a loop, and how bad is it                          severity.go
//	what shows that edits go in circles                               circles.go
//	when does the same call come too often                            circles.go, MaxCalls
//	when does a call wait                                             spoken.go, waits
//	which calls run tests                                             testruns.go
//	when does an attempt repeat the one before it                     stagnation.go
//	when does a round of feedback bring the same work again           redone.go
//	when does feedback repeat earlier feedback                        stagnation.go, SaysAgain
//	when is the effort raised, when are failing tests told            ladder.go
//	did an attempt change anything                                    receipt.go, Receipt.Progress
//	when is the agent's session continued                             ladder.go, Resume
//	who chooses among several free backends                           policy.go, Facts.Choose; choose.go
//	which names may programs reach over the network                   host.go
//	which words has a rule, where it is shown                         rule.go
//	what is a reason, and how is it written                           rule.go, Reason
//	endings, outcomes, actions, sources of feedback                   words.go
//	which commands there are                                          commands.go
//	what a receipt holds: tokens, limits, rungs                       receipt.go
//	which lines of an agent's message have a meaning                  answer.go
//	what looks like a secret, what tells agents what to do            change.go
//	what a failing verify command means, given the base               verified.go, Verified.Compare
//	which files are tests, or run by the verify commands              testside.go
//	what do the tests say apart from what a change did to them        evidence.go
//	which characters show nothing                                     words.go, Invisible
package policy
