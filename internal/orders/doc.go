// Package orders carries out what people order on the pages, in the shell, and of a repository in comments. It is no second way to act: an order
// about a thread becomes the event that the same command in a comment becomes, and the solver does the rest. What
// concerns a repository, an account or a delivery is logged with the person's name, too (thread.Operated).
//
// Whoever calls these functions has found out that the person may do it.
//
//	which orders are there, and which is what event   orders.go
//	when can one not be carried out, and why          orders.go, Cannot
//	how does an unpaused repository go on             orders.go, Unpause
//	where is it asked whether a repository is paused  ../../solver/step.go, facts; thread.Paused
package orders
