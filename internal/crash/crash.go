// Package crash names the moments at which a test kills Pawl: between any two of
// them something has been done that the next process has to find as it is.
//
// In an ordinary build Point does nothing and is inlined away. Built with the tag
// crashpoints, a process obeys these variables of its environment:
//
//	PAWL_CRASH_AT=pushed:2        SIGKILL itself when it passes "pushed" the second time
//	PAWL_PAUSE_AT=push_begun      SIGSTOP itself there, the first time
//	PAWL_CRASH_RANDOM=7,0.01      SIGKILL itself at any point, with this seed and probability
//	PAWL_CRASH_CLOCK=40s          have a clock that is ahead by so much
//
// Such a build is for tests only: whoever sets its environment can end it.
package crash

// Names are the points, in the order in which a request from a webhook to a pull
// request passes them. A test in this package compares the list with the code.
func Names() []string {
	return []string{
		// The start.
		"migrating", "migrated", "queue_migrated", "serving",
		// A delivery.
		"received", "stored", "answered", "delivery_claimed", "delivery_appended", "delivery_handled",
		// The store, on behalf of all of these.
		"commit", "committed_rows", "event_appended", "breaker_write", "breaker_written",
		// A step.
		"claimed", "act_begun", "reacted", "decided", "account_entered", "releasing", "released",
		// An attempt.
		"token_minted", "attempt_logged", "cloned", "agent_started", "agent_done", "committed", "verified",
		"push_begun", "pushed", "push_logged", "attempt_ending", "attempt_ended", "interrupting",
		// What GitHub shows.
		"pull_begun", "pull_opened", "comment_written", "comment_edited", "answer_written", "check_created", "check_updated", "act_logged",
		// The end.
		"stopping", "queue_stopped", "shutdown",
	}
}
