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

// A webhook and the reconciliation may both bring a remark, in any order and at the same time. So its event
// is keyed by what it is about, not by the delivery that brought it. Of an edit only the webhook names the editor.

// Reconciled stands in place of a delivery's GUID in events that the reconciliation found.
const Reconciled = "reconciliation"

// ReconciledEdit does so in events of edits that the reconciliation saw, and of which it does not know the
// editor. Such an event accepts nothing and stands in nobody's way: the webhook of the edit, which names its
// sender, is judged by itself whenever it comes.
const ReconciledEdit = "reconciliation of an edit"

// MadeKey is the key of a text as it was written; empty when GitHub did not say which. Edits are told apart by their
// deliveries: somebody may edit a text there, back and there again within one of GitHub's whole seconds.
func MadeKey(kind string, id int64) string {
	if id == 0 {
		return ""
	}
	return fmt.Sprintf("made:%s:%d", kind, id)
}

// ClosedKey is the key of the end of an issue or pull request. A pull request is merged once.
func ClosedKey(number int, at time.Time, merged bool) string {
	switch {
	case merged:
		return fmt.Sprintf("merged:%d", number)
	case at.IsZero():
		return ""
	}
	return fmt.Sprintf("closed:%d:%d", number, at.Unix())
}

// deliveryKey is the key of what only its delivery tells apart: the i-th thing that one brought.
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

// overtaken reports whether the reconciliation has found this version of a remark, or one that came after it.
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

// feedback is what the event of a remark tells of it, whatever becomes of it.
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

// Remarks are the judged remarks in a log, accepted or not.
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

// Texts are the newest versions of the remarks in a log that are texts, by identity.
func Texts(events []thread.Event) map[string]thread.Feedback {
	texts := map[string]thread.Feedback{}
	for _, f := range Remarks(events) {
		if last, ok := texts[identity(f)]; !ok || !f.MadeAt.Before(last.MadeAt) {
			texts[identity(f)] = f
		}
	}
	return texts
}

// Same reports whether the log holds a text as it is, as far as it kept it: of
// an ignored one it keeps the beginning, of Pawl's own nothing.
func Same(last thread.Feedback, text string) bool {
	if last.Own || last.Raw == text {
		return true
	}
	cut := len(last.Raw) >= maxIgnored-3
	return cut && strings.HasPrefix(text, last.Raw)
}

// reviewAnchor stands before a review's id in its address.
const reviewAnchor = "#pullrequestreview-"

// identity names the text that a remark is, whatever its version; empty for remarks that are no texts.
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
