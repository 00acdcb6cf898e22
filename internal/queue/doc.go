// Package queue handles due work. Rows of threads and deliveries say what is due and are claimed. A wake-up only
// starts a claim, and polling claims without one, so a dead process loses no work. Repeated work is harmless: leases,
// events' keys and deliveries' states prevent duplicates.
//
//	queue.go       claims of threads, failed steps, polling
//	deliveries.go  deliveries of this process and their order
package queue
