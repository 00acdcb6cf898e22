// Package handlers decides what a webhook means. Ingress stores a delivery
// durably and answers; the delivery job later calls Handle, which reads the
// payload with one file per GitHub event, asks policy whether it is real
// feedback, and appends an event with its reason to the thread's log. GitHub is
// asked for one thing only: the actor's permission.
package handlers
