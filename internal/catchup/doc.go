// Package catchup finds what no webhook brought: deliveries that failed, from
// GitHub's list of them, and events that never fired, from what GitHub says of Pawl's
// own threads. Deliveries are stored as their webhooks would have been; what is found
// otherwise is given to handlers.Decide, under the key that a webhook of it has.
//
//	question                                                     file
//	which node asks GitHub, how often, and in which order        catchup.go, Watch; store.Duty
//	what was sent before Pawl listened                           catchup.go, firstStart
//	which deliveries did not arrive                              missed.go
//	how a server without a public address gets its deliveries    catchup.go, Poll
//	how are threads compared with GitHub                         reconcile.go
//	what does a difference become                                unseen.go
package catchup
