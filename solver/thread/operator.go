package thread

import (
	"encoding/json"
	"fmt"
)

// Operated is what somebody did on the pages, in the shell or in a comment that concerns more than one thread. It stands in a log
// of its own: that of the repository, or that of the server.
type Operated struct {
	What    string `json:"what"`              // one of those below
	Subject string `json:"subject,omitempty"` // the account, or the delivery's GUID
	By      string `json:"by"`                // a login at GitHub, or the user of a shell
	Where   string `json:"where"`             // on the pages, in the shell, or in a comment
}

// What people do to more than one thread.
const (
	OperatedPause     = "paused"
	OperatedUnpause   = "unpaused"
	OperatedBreaker   = "breaker_closed"
	OperatedDelivery  = "delivery_retried"
	OperatedDismissal = "delivery_dismissed"
)

// RepoLog is where it is logged what people did to a repository as a whole. It is no thread: numbers begin with 1.
func RepoLog(owner, name string) ID { return ID{Owner: owner, Name: name} }

// ServerLog is the same for accounts and deliveries. No owner at GitHub has such a name.
func ServerLog() ID { return ID{Owner: "-", Name: "-"} }

// Paused is the order by which nothing may begin in a repository, as its log has it; nil where it may.
func Paused(repoLog []Event) (by *Operated, err error) {
	for _, e := range repoLog {
		if e.Kind != KindOperated {
			continue
		}
		var o Operated
		if err := json.Unmarshal(e.Data, &o); err != nil {
			return nil, fmt.Errorf("event %d (%s): %w", e.Seq, e.Kind, err)
		}
		switch o.What {
		case OperatedPause:
			by = &o
		case OperatedUnpause:
			by = nil
		}
	}
	return by, nil
}

// ClosedAtGitHub says that the issue or pull request itself is closed, which no order but reopening it changes; empty
// where work that is asked for may begin.
func ClosedAtGitHub(s *State) string {
	if s.closedBy == "closed" || s.closedBy == "merged" {
		return s.Closed
	}
	return ""
}
