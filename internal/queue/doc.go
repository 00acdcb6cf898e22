// Package queue works off what is due. What that is stands in the rows of threads and deliveries, and is
// claimed there; a wake-up only says that it is time to look, and a poll looks when none came. So a process
// that dies loses no work, and a thread or a delivery that is worked on twice does no harm: the thread's
// lease, the keys of events and the state of the delivery see to that.
//
//	question                                               file
//	when threads are claimed, and how many at once         queue.go
//	what a step that panics or fails leads to              queue.go
//	how often is looked where nothing wakes                queue.go, pollInterval
//	which deliveries this process handles, in what order   deliveries.go
package queue
