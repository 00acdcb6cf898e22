// Package solver carries out decisions. It takes one step of a thread at a time under a lease, runs attempts from
// checkout to push, and keeps GitHub in line with the log. The log is package thread, the lease is package
// lease, and an attempt is package attempt.
//
// A step folds the log, asks policy.Next, does one effect, appends the result, and repeats until nothing is left to
// do now. After a crash, Pawl resumes by taking the next step.
//
//	step.go      a step: its order, the facts for policy, background work during an attempt
//	solver.go    Step, and when a failed step is retried
//	slots.go     the number of concurrent attempts, and the first attempt on a limited account
//	nodes.go     attempts that are left to another node
//	host.go      the differences between GitHub and a folder (pawl run)
//	prepare.go   refusals before an attempt, and an attempt's input
//	context.go   the discussion, and who may write there
//	checks.go    other apps' failing checks of a commit
//	update.go    merging the base into Pawl's pull request
//	publish.go   acts that happen once: comments, check runs, the pull request's description and readiness
//	answer.go    opening pull requests, posting answers and plans, replies to commands
//	remarks.go   replies to review comments on lines
//	view.go      the input of pages and check runs
//	learn.go     rewards, and the choice of a backend
//	damaged.go   threads with unreadable events
package solver
