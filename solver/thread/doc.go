// Package thread is the log of one issue or pull request and its fold. It is pure: its results depend only on the
// events, without clock, files or network.
//
// Every change of a thread is an event in its log. State is the fold of these events. Policy's facts, learning's
// grades and all that users see are computed from it.
//
//	question                                                       file
//	what is an event, a lease, a batch, a delivery; Store          log.go
//	how long does a lease last (30 s), how often is it renewed      log.go
//	what do the events of each kind hold                            events.go
//	what does the receipt of an attempt hold                        ../../policy/receipt.go
//	how does each event change the state                            fold.go
//	what do commands, closings and other checks change              fold_thread.go
//	which remark counts when webhooks come late or out of order     fold_thread.go
//	how were other Apps' failing checks classified                  checks.go
//	what are policy's facts, what is an attempt's work              facts.go
//	is a change asked for, an answer or a plan                      facts.go
//	what is an attempt's work worth                                 grades.go
//	where are acts on more than one thread logged                   log.go
//	which key does an act have, how is Pawl's branch called         events.go
package thread
