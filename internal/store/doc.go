// Package store keeps the logs of threads, their leases, the webhook deliveries
// and what threads share (breakers, cooldowns, accounts in use, grades, blobs) in
// SQLite or PostgreSQL. It implements thread.Store with one code for both
// databases; only opening, migrating, row locks and the clock of leases differ.
//
// Every time in the database is an integer of microseconds since 1970 in UTC,
// and 0 stands for none.
//
// # What is due
//
// What is due stands in the row that it is about, and is claimed there. A thread
// that needs a step has queued_at set, or a wake_at that has come; Claim takes its
// lease, which is the claim, and clears both. A thread whose lease is held is not
// due. Release leaves queued_at alone, so a wake-up that meets a running or just
// finished step always leads to one more. Sweep frees the threads of holders that
// died. A delivery that is not finished has retry_at set, which is when it is due;
// claiming it puts that off. The queue is told after each commit what became due,
// and other nodes by NOTIFY; nothing depends on their hearing it.
//
// # Several nodes
//
// A SQLite file belongs to one process: a second one is refused while the first
// holds the lock file, which the kernel frees however that one ends. Others may
// read (OpenReadOnly). Any number of nodes may share a PostgreSQL database.
// Nothing of the state is in memory: group commits and the turn of writes order
// the work of one node only. What two nodes could do at once is decided by row
// locks (threads, breakers, deliveries), by an advisory lock in the transaction
// (accounts, grades, blobs), or skipped by whoever comes second (claims, the sweep).
// The cleaning is one server's duty; where it takes so long that another one begins it,
// too, each leaves out the rows that the other one is at. A transaction takes its locks
// in this order: advisory lock, thread, breaker, cooldown, alias. Leases are judged by
// one clock, see clock.go.
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
//
// # Where to look
//
//	question                                               file
//	how is a thread claimed, how does a lease end          lease.go
//	where do the 30 s of a lease stand                     thread.LeaseTime; what counts them: clock.go
//	who frees the threads of a dead node, how often        lease.go (Sweep), called by internal/queue
//	why has a repeated event no second effect              log.go, insertEvents
//	when is a delivery answered, how many share a commit   receive.go
//	where is a delivery claimed, when is it tried again    deliveries.go
//	in what form is a payload stored                       payload.go
//	how do nodes tell each other that something is due     postgres.go, Listen
//	what happens on a full disk, after a failed fsync      database.go
//	who may open a SQLite file                             sqlite.go, lockFile
//	what is removed, in how large transactions             clean.go; by a wrong clock: clock.go, TrustClock
//	how many attempts may run on an account                accounts.go
//	which node does what only one should do                duty.go
//	what else do nodes share, such as GitHub's limits      shared.go
//	what did attempts use above their threads, is there room  usage.go
//	what is kept of attempts for learning                  grades.go
//	what do the pages and pawl status list                 list.go
//	what does an upgrade change                            migrations, migrate.go
package store
