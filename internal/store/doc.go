// Package store keeps the logs of threads, their leases, the webhook deliveries and what threads share
// (breakers, cooldowns, accounts in use, grades, blobs) in SQLite or PostgreSQL. It implements thread.Store
// with one code for both; only opening, migrating, row locks and the clock differ. Every time in the
// database is an integer of microseconds since 1970 in UTC, and 0 stands for none.
//
// Why claims, leases and deliveries are rows, and what several nodes may do at once, stands in docs/architecture.md
// ("Events, claims and nodes"). Nothing of the state is in memory: the turn of writes orders the work of one node
// only. What two nodes could do at once is decided by row locks (threads, breakers, deliveries), by
// an advisory lock in the transaction (accounts, grades, blobs), or skipped by the second node (claims, the
// sweep, the cleaning). A transaction takes its locks in this order: advisory lock, thread, breaker, cooldown, alias.
//
// While the database cannot be written to (a full disk, a lock that another program holds, PostgreSQL restarting)
// every write fails, Receive among them, and works again when the cause is gone. A transaction is all or nothing, and
// what was answered is kept. A damaged file, one on a read-only file system, and one that another program holds are
// refused by Open, with what to do about it.
//
//	question                                               file
//	how is a thread claimed, how does a lease end          lease.go
//	where do the 30 s of a lease stand                     thread.LeaseTime
//	by whose clock is something stored                     clock.go
//	who frees the threads of a dead node, how often        lease.go (Sweep), called by internal/queue
//	why has a repeated event no second effect              log.go, insertEvents
//	when is a delivery answered                            receive.go
//	where is a delivery claimed, when is it tried again    deliveries.go
//	how do nodes tell each other that something is due     postgres.go, Listen
//	what happens on a full disk, after a failed fsync      database.go
//	how long may PostgreSQL take, what does a pooler lose  postgres.go
//	which settings of PostgreSQL does a transaction set    clock.go, enter
//	who may open a SQLite file                             sqlite.go, createFile
//	what is removed, in how large transactions             clean.go
//	how many attempts may run on an account                accounts.go
//	which node does what only one should do                duty.go
//	what else do nodes share, such as GitHub's limits      duty.go, UpdateShared
//	what did attempts use above their threads, is there room  accounts.go
//	what is kept of attempts for learning                  accounts.go, PutGraded
//	what do the pages and pawl status list                 list.go
//	what is the schema, which ones are refused             migrations, store.go
package store
