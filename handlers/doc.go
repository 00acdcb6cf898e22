// Package handlers turns webhooks into events. Ingress stores a delivery and answers; the queue later calls Deliver,
// which passes it to the EventHandler of its event (one file per event). The handler parses the payload and asks
// policy/feedback whether it is feedback. It appends an event, with the reason, to the thread's log. internal/catchup
// finds missed activities and passes them to Decide.
//
//	ingress.go       refused webhooks, secrets
//	handlers.go      the list of handlers, failed deliveries, ignored events (Other)
//	payload.go       the parsed fields of events
//	take.go          judgement, lookups, log entries, wake-ups
//	once.go          keys: each remark counts once, whatever its source
//	generation.go    remarks by agents; threads that follow from Pawl's work
//	signals.go       permissions, merges, reverts, users' verdicts
//	push.go          moved bases
//	config_file.go   checks of a changed .github/pawl.yml
//	check_run.go     other Apps' checks, and buttons
package handlers
