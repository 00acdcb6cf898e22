// Package solver carries out decisions. It owns the thread's log and its fold,
// takes one step at a time under a lease, runs one attempt from checkout to
// push, and keeps what GitHub shows in agreement with the log.
//
// A step is: fold the log, ask policy.Next, do one effect, append what
// happened, again until there is nothing to do now. Resuming after a crash is
// taking the next step.
package solver
