// Package store keeps the logs of threads, their leases, the webhook deliveries
// and what threads share (breakers, cooldowns) in SQLite or PostgreSQL. It
// implements solver.Store with one code for both databases; only opening,
// migrating and row locks differ.
//
// Every time in the database is an integer of microseconds since 1970 in UTC,
// and 0 stands for none.
//
// # Wake-ups
//
// A thread that needs a step has queued_at set, and in the transaction that set
// it a step job was given to the queue. Acquire clears it. Whoever finds it set
// when a lease is given back enqueues again, so a wake-up that meets a running
// or just finished step always leads to one more. What a crash leaves behind is
// found by Stale.
package store
