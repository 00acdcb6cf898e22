// Package thread is the log of one issue or pull request and its fold. It is pure: it reads no clock, no file
// and no network, and what it computes depends on the events that it is given and on nothing else.
//
// Everything that happens to a thread is an event appended to its log. State is the fold of these events; the
// facts for policy, the grades for learning and what people are shown are computed from it.
//
//	question                                                       file
//	what is an event, a lease, a batch, a delivery; Store          log.go
//	how long does a lease last (30 s), how often is it renewed      log.go
//	what do the events of each kind hold                            events.go
//	what does the receipt of an attempt hold                        ../../policy/receipt.go
//	how does each event change the state                            fold.go
//	what do orders of people, closings and checks of others change  fold_thread.go
//	which remark counts when webhooks come late or out of order     fold_thread.go
//	what were failing checks of others found to be                  checks.go
//	what are policy's facts, what is an attempt to work on          facts.go
//	is a change asked for, an answer or a plan                      facts.go
//	what is an attempt's work worth                                 grades.go
//	what do people do to more than one thread, where is it logged   log.go
//	which key does an act have, how is Pawl's branch called         events.go
package thread
