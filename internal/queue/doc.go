// Package queue handles due work. It claims due threads and deliveries in the database. A wake-up only starts a claim
// early, and polling needs none, so a dead process loses no work. Repeated work is harmless: leases, events' keys and
// deliveries' states prevent duplicates.
//
//	queue.go       claims of threads, failed steps, polling
//	deliveries.go  this process's deliveries and their order
package queue
