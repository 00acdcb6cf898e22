// Package solver carries out decisions. It takes one step of a thread at a time under a lease, runs attempts from
// checkout to push, and keeps GitHub in agreement with the log. The log is package thread, the lease is package
// lease, and an attempt is package attempt.
//
// A step folds the log, asks policy.Next, does one effect, appends the result, and repeats until nothing is left to
// do now. Resuming after a crash is taking the next step.
//
//	question                                                       file
//	what does a step do, and in which order                         step.go
//	when is policy asked, and with which facts                      step.go (decide)
//	what differs between GitHub and a folder (pawl run)             host.go
//	when is a step that failed tried again                          solver.go (retry)
//	how many attempts run at a time, who tries a limited account    slots.go
//	what do users see while the agent works                         step.go (inBackground)
//	what is refused before an attempt, what is an attempt given     prepare.go
//	when is the base merged into Pawl's pull request                update.go
//	what is read of the discussion, who may write there             context.go
//	what are the failing checks of a commit, what is shown of them  checks.go
//	how does an act happen once                                     publish.go
//	which comment and check runs are written, and when              publish.go
//	how is a copy of Pawl's own texts known later                   publish.go (says)
//	what of the pull request is kept current, when is it ready      publish.go
//	how are answers and plans posted, which plan is carried out     answer.go
//	how are remarks on lines answered and resolved                  remarks.go
//	when is the pull request opened, what is answered how often     answer.go
//	what do the pages and check runs show of the log                view.go
//	which backend is chosen from the rewards                     learn.go
package solver
