// Package queue runs deliveries and steps as River jobs in the store's
// database. A job carries only a name, a GUID or a thread; what there is to do
// is in the store. A job may run twice or late: the thread's lease, the state of
// the delivery and the sweep make that harmless.
package queue
