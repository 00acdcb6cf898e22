// Package queue runs steps as River jobs in the store's database, and handles
// deliveries, whose rows are their own queue. A job carries only the thread's name;
// what there is to do is in the store. A job may run and a delivery be handled
// twice or late: the thread's lease, the keys of events, the state of the delivery
// and the sweep make that harmless.
package queue
