// Package learning grades attempts and chooses a backend by the grades. It is pure: rows and a time go in; rewards,
// arms and a choice come out, and chance is a seed.
//
// Each attempt is a row of signals. Signals are checked before they count, since a broken source gives grades as
// well. Signals that pass make a reward, and rewards make each backend's posterior. A missing signal changes
// nothing.
//
//	question                                                     file
//	which sources are there, which one is trusted most           reward.go, sources
//	what is each signal's value                                  signals.go
//	how do signals become one grade                              reward.go, grade
//	in which order do rows count, which are set aside            validity.go
//	when is a value implausible, which grades count as rewards   checks.go
//	when does a source repeat itself or fail too often           health.go
//	how far does a source agree with people and the verifier     agreement.go
//	what is shown of a source's health                           health.go, Health
//	how fast does an old reward fade; what is known of an arm    posterior.go
//	where is Thompson sampling, and when is it not asked         choose.go
//	what kind of task is it, and how large                       task.go
//	how often does a run pass at the first try                   recoveries.go, FirstTry
//	how often did each recovery help, and what did it cost       recoveries.go
//
// lab/worlds tests it in simulated worlds.
package learning
