// Package catchup finds events that no webhook delivered: failed deliveries in GitHub's list, and missing events in
// GitHub's state of Pawl's threads. It stores missed deliveries like webhooks. Other findings go to handlers.Decide,
// under the key of their webhook if that can be derived.
//
//	catchup.go    which node asks GitHub, and when (Watch, Poll); Pawl's first start
//	missed.go     missed deliveries
//	reconcile.go  threads compared with GitHub
//	unseen.go     the activity for each difference
package catchup
