// Package handlers turns webhooks into events. Ingress stores a delivery durably and answers; the queue later calls
// Deliver, which passes it to the EventHandler of its event, one per file. That one parses the payload, asks
// policy/feedback whether it is feedback, and appends an event with its reason to the thread's log. It asks GitHub
// for the actor's permission, at a thread's first request whether it is closed, and for a reverted commit's pull
// request. internal/catchup finds missed activities and passes them to Decide.
//
//	question                                                     file
//	what is refused before a webhook is stored, with which code  ingress.go
//	which secret may a webhook be signed with                    ingress.go, signedBy
//	which events are handled, by what                            handlers.go, EventHandlers
//	what becomes of a delivery that fails                        handlers.go, failed
//	what is read of an event                                     its file; the types: payload.go
//	who was signed out of the pages                              authorization.go
//	which events are ignored                                     handlers.go (Other)
//	how is looked up what a judgement needs                      take.go, judge
//	did the agent write a remark itself                          generation.go
//	does Pawl's own work lead to a thread                        generation.go
//	what is appended to the log, and when is a thread woken      take.go, remark and change
//	who may write (the permission gate)                          signals.go, permission
//	what counts as a merge, a revert, a verdict of people        signals.go
//	which threads learn that their base moved                    push.go
//	where is a changed .github/pawl.yml checked                  config_file.go
//	why does the same remark count once, whatever its source       once.go
//	what is read of a finished check, and of a button            check_run.go
package handlers
