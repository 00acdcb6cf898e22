// Package handlers decides what a webhook means. Ingress stores a delivery
// durably and answers; the queue later calls Handle, which reads the
// payload with one file per GitHub event, asks policy whether it is real
// feedback, and appends an event with its reason to the thread's log. For that
// GitHub is asked for the actor's permission, at the first order on a thread whether
// it is closed, and for the pull request of a commit that somebody reverted. CatchUp
// finds what no webhook brought: deliveries that failed, and events that never fired.
package handlers
