// Package commands executes users' commands from the pages and the shell, and repository commands from comments. A
// command about a thread becomes the same event as in a comment. Commands about a repository, an account or a
// delivery are logged with the user's name (thread.Operated).
//
// The caller must have checked the user's permission. The solver checks a pause (../../solver/step.go, facts).
package commands
