// Package solver carries out decisions. It takes one step of a thread at a time under a lease, has one
// attempt done from checkout to push, and keeps what GitHub shows in agreement with the log. The log is
// package thread, the lease is package lease, and an attempt is package attempt.
//
// A step is: fold the log, ask policy.Next, do one effect, append what happened, again until there is nothing
// to do now. Resuming after a crash is taking the next step.
//
//	question                                                       file
//	what does a step do, and in which order                         step.go
//	when is policy asked, and with which facts                      step.go (decide)
//	what differs between GitHub and a folder (pawl run)             host.go
//	when is a step that failed tried again                          solver.go (retry)
//	how many attempts run at a time, who tries a limited account    slots.go
//	what are people told while the agent works                      step.go (aside)
//	what is refused before an attempt, what is an attempt given     prepare.go
//	when is the base merged into Pawl's pull request                update.go
//	what is read of the discussion, who may write there             context.go
//	what are the failing checks of a commit, what is told of them   checks.go
//	how does an act happen once                                     publish.go
//	which comment and check runs are written, and when              publish.go
//	how is a copy of Pawl's own texts known later                   publish.go (says)
//	what of the pull request is kept current, when is it ready      publish.go
//	how are answers and plans posted, which plan is worked off     answer.go
//	how are remarks on lines answered and resolved                 remarks.go
//	when is the pull request opened, what is answered how often     answer.go
//	what do the pages and check runs show of the log                view.go
//	which backend is chosen by what was learned                     learn.go
package solver
