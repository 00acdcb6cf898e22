// Package feedback judges whether a remark on a thread asks for work. It is pure: a Scene has the state of the thread
// and of GitHub. If a judgement needs a request to GitHub, it says so.
//
// A remark counts if its writer is neither Pawl nor its agent, may write to the repository, and says something
// visible.
//
//	feedback.go     the order of the tests (Judge), look-ups, permissions
//	authored.go     words of an agent or of Pawl
//	asking.go       thanks, severity of remarks, a program's pace
//	command.go      commands, mentions, triggers
//	checks.go       classes of other checks' failures; outside.go: GitHub's own failures
//	description.go  edited descriptions: content, changes, time stamps
//	visible.go      the visible part of a text (for prompts)
//	markdown.go     quotations, code, HTML comments, quoted e-mail
package feedback
