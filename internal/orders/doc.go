// Package orders carries out users' commands from the pages and the shell, and repository commands from comments. A
// command about a thread becomes the same event as in a comment, and the solver does the rest. Commands about a
// repository, an account or a delivery are logged with the user's name (thread.Operated).
//
// The caller must have checked the user's permission.
//
//	which commands are there, and which is what event orders.go
//	when has one no effect, and why                   orders.go, Cannot
//	how does an unpaused repository continue          orders.go, Unpause
//	where is a pause checked                          ../../solver/step.go, facts; thread.Paused
package orders
