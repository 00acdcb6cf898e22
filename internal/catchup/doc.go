// Package catchup finds what no webhook brought: failed deliveries, from GitHub's list, and missing events, from
// GitHub's state of Pawl's own threads. Deliveries are stored like webhooks; other findings go to handlers.Decide,
// under the key of their webhook.
//
//	question                                                     file
//	which node asks GitHub, how often, and in which order        catchup.go, Watch; store.Duty
//	what was sent before Pawl listened                           catchup.go, firstStart
//	which deliveries did not arrive                              missed.go
//	how a server without a public address gets its deliveries    catchup.go, Poll
//	how are threads compared with GitHub                         reconcile.go
//	what does a difference become                                unseen.go
package catchup
