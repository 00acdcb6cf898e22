// Package queue handles due work. Rows of threads and deliveries say what is due, and are claimed; a wake-up only
// starts a look, and a poll looks without one. So a dead process loses no work, and working twice on a thread or a
// delivery is harmless: the thread's lease, the events' keys and the delivery's state ensure that.
//
//	question                                               file
//	when threads are claimed, and how many at once         queue.go
//	what happens after a step panics or fails              queue.go
//	how often does it look without a wake-up               queue.go, pollInterval
//	which deliveries this process handles, in what order   deliveries.go
package queue
