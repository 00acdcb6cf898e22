package handlers

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// A webhook and the reconciliation may report the same remark in any order. So a new text's key names
// the text. Other events are keyed by delivery: only the webhook names an edit's editor.

// Reconciled replaces a delivery's GUID in events of the reconciliation.
const Reconciled = "reconciliation"

// ReconciledEdit marks an edit that the reconciliation found without its editor. It is recorded as ignored; if the
// edit's webhook arrives later, Pawl judges the webhook's edit.
const ReconciledEdit = "reconciliation of an edit"

// MadeKey returns the key of an original text; empty without an id. Edits are identified by delivery. A text may be
// edited back and forth within one second, and GitHub's timestamps are in whole seconds.
func MadeKey(kind string, id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("made:%s:%d", kind, id)
}

// ClosedKey returns the key of an issue's or pull request's end. A pull request is merged once.
func ClosedKey(number int, at time.Time, merged bool) string {
	switch {
	case merged:
		return fmt.Sprintf("merged:%d", number)
	case at.IsZero():
		return ""
	}
	return fmt.Sprintf("closed:%d:%d", number, at.Unix())
}

// deliveryKey returns the key of a delivery's i-th activity.
func deliveryKey(guid string, i int) string {
	if i == 0 {
		return "delivery:" + guid
	}
	return fmt.Sprintf("delivery:%s:%d", guid, i)
}

func Digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// overtaken reports whether the reconciliation has found this or a newer version of a remark.
func (it Activity) overtaken(s thread.State, r *feedback.Remark) bool {
	mine := identity(it.feedback(r))
	newer := func(f thread.Feedback) bool {
		return f.Delivery == Reconciled && identity(f) == mine && !f.MadeAt.Before(it.MadeAt)
	}
	all := slices.Concat(s.Ignored, s.Controls)
	for _, r := range s.Feedback {
		all = append(all, r.Feedback)
	}
	return mine != "" && slices.ContainsFunc(all, newer)
}

func (it Activity) feedback(r *feedback.Remark) thread.Feedback {
	first := false
	switch it.Target.Kind {
	case "issue_comment", "review_comment":
		first = !r.Edited
	}
	return thread.Feedback{
		Source:   r.Source,
		By:       r.Actor,
		Number:   it.Number,
		Target:   it.Target,
		First:    first,
		URL:      it.URL,
		SHA:      r.SHA,
		MadeAt:   it.MadeAt,
		Snapshot: &it.Snapshot,
	}
}

// Remarks returns a log's judged remarks, accepted or not.
func Remarks(events []thread.Event) []thread.Feedback {
	kinds := []thread.Kind{thread.KindFeedback, thread.KindIgnored, thread.KindControl, thread.KindQuestion}
	var list []thread.Feedback
	for _, e := range events {
		var f thread.Feedback
		if slices.Contains(kinds, e.Kind) && json.Unmarshal(e.Data, &f) == nil {
			list = append(list, f)
		}
	}
	return list
}

// Texts returns the newest versions of a log's texts by identity.
func Texts(events []thread.Event) map[string]thread.Feedback {
	texts := map[string]thread.Feedback{}
	for _, f := range Remarks(events) {
		if last, ok := texts[identity(f)]; !ok || !f.MadeAt.Before(last.MadeAt) {
			texts[identity(f)] = f
		}
	}
	return texts
}

// Same reports whether the log has this text. The log keeps only the beginning of ignored texts, and none of Pawl's
// own.
func Same(last thread.Feedback, text string) bool {
	if last.Own || last.Raw == text {
		return true
	}
	cut := len(last.Raw) >= maxIgnored-3
	return cut && strings.HasPrefix(text, last.Raw)
}

const reviewAnchor = "#pullrequestreview-"

// identity identifies a remark's text across versions; empty without a text.
func identity(f thread.Feedback) string {
	switch {
	case f.Source == policy.FromDescription:
		return fmt.Sprintf("description:%d", f.Number)
	case f.Target.Kind == "issue_comment", f.Target.Kind == "review_comment":
		return fmt.Sprintf("%s:%d", f.Target.Kind, f.Target.ID)
	case f.Source == policy.FromReview:
		if _, id, ok := strings.Cut(f.URL, reviewAnchor); ok {
			return "review:" + id
		}
	}
	return ""
}
