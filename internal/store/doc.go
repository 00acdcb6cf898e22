// Package store keeps the logs of threads, their leases, the webhook deliveries
// and what threads share (breakers, cooldowns, accounts in use, grades, blobs) in
// SQLite or PostgreSQL. It implements solver.Store with one code for both
// databases; only opening, migrating, row locks and the clock of leases differ.
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
//
// # Several nodes
//
// A SQLite file belongs to one process: a second one is refused while the first
// holds the lock file, which the kernel frees however that one ends. Others may
// read (OpenReadOnly). Any number of nodes may share a PostgreSQL database.
// Nothing of the state is in memory: group commits and the turn of writes order
// the work of one node only. What two nodes could do at once is decided by row
// locks (threads, breakers, deliveries), by an advisory lock in the transaction
// (accounts, grades, blobs), or skipped by whoever comes second (the sweep, the
// cleaning). A transaction takes its locks in this order: advisory lock, thread,
// breaker, cooldown, alias. Leases are judged by one clock, see clock.go.
//
// # Faults
//
// While the database cannot be written to (a full disk, a lock that another
// program holds, PostgreSQL restarting) every write fails, Receive among them,
// and works again when the cause is gone. A transaction is all or nothing, and
// what was answered is kept. After a failed fsync, and when damage is found, this
// process writes nothing more and Fatal says why. A damaged file, one on a
// read-only file system, and one that another program holds are refused by Open,
// with what to do about it.
package store
