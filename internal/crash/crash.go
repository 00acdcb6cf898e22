package crash

// Names are the points, in the order in which a request from a webhook to a pull
// request passes them. A test in this package compares the list with the code.
func Names() []string {
	return []string{
		// The start.
		"migrating", "migrated", "serving",
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
		"pull_begun", "pull_opened", "pull_described", "pull_ready", "review_asked", "comment_written", "comment_edited", "answer_written", "check_created", "check_updated", "act_logged",
		// The end.
		"stopping", "queue_stopped", "shutdown",
	}
}
