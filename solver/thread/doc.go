// Package thread defines the event log of an issue or pull request and folds it into a State. It depends only on the
// events: no clock, files or network.
//
//	log.go         events, leases, batches, deliveries, Store; acts on repositories and the server
//	events.go      the content of each kind of event; keys of acts; branch names
//	fold.go        the effect of each event on the state
//	fold_thread.go commands, closings, late and reordered remarks
//	checks.go      other Apps' failed checks
//	facts.go       policy's facts; an attempt's work and purpose
//	grades.go      the worth of an attempt
package thread
