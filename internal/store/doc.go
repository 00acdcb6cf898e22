// Package store keeps threads' logs and leases, webhook deliveries, and shared state in SQLite or PostgreSQL. It
// implements thread.Store for both; they differ only in engine.go. Package postgres has what only PostgreSQL needs. Times
// are integers of microseconds since 1970 in UTC; 0 means none.
//
// docs/architecture.md ("Events", "Several nodes") explains claims and leases. No state exists only in memory. Row
// locks (threads, breakers, deliveries) and advisory locks (accounts, attempts, blobs) exclude other nodes. Claims, the
// sweep and the cleaning skip locked rows. Locks are taken in this order: advisory lock, thread, breaker, cooldown,
// alias.
//
// While the database accepts no writes, every write fails, including Receive. Transactions are atomic, and answered
// writes persist. Open refuses a damaged file, a read-only file system, and a file locked by another program.
//
//	lease.go      claims and leases; the sweep frees dead nodes' threads
//	log.go        events; repeated events have no second effect
//	receive.go, deliveries.go   answers to GitHub; retries of deliveries
//	engine.go     the differences between the databases; nodes
//	sqlite.go     file locks
//	database.go   transactions, full disks, failed syncs
//	clean.go      removal of old records
//	accounts.go, windows.go   running attempts by account, usage and grades; usage windows
//	shared.go     blobs that all nodes share, Ping
//	list.go       lists for the pages and pawl status
//	store.go      schema versions
package store
