package handlers

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// A webhook and the reconciliation may both bring a remark, in any order and at
// the same time. So its event is keyed by what it is about and by its version,
// not by the delivery that brought it.

// Reconciled stands in place of a delivery's GUID in events that the
// reconciliation found.
const Reconciled = "reconciliation"

// ReconciledEdit does so in events of edits that the reconciliation saw, and of
// which it does not know the editor. Such an event accepts nothing and stands in
// nobody's way: the webhook of the edit, which names its sender, is judged by
// itself whenever it comes.
const ReconciledEdit = "reconciliation of an edit"

// editedKey begins the keys of edits.
const editedKey = "edited:"

// once is the key of a text that was created or edited; empty when GitHub did not
// say which.
func once(action, kind string, id int64, at time.Time, text string) string {
	switch {
	case id == 0:
		return ""
	case action == "created":
		return fmt.Sprintf("made:%s:%d", kind, id)
	}
	return fmt.Sprintf("%s%s:%d:%d:%s", editedKey, kind, id, at.Unix(), digest(text))
}

// closedKey is the key of the end of an issue or pull request. A pull request is
// merged once.
func closedKey(number int, at time.Time, merged bool) string {
	switch {
	case merged:
		return fmt.Sprintf("merged:%d", number)
	case at.IsZero():
		return ""
	}
	return fmt.Sprintf("closed:%d:%d", number, at.Unix())
}

// deliveryKey is the key of what only its delivery tells apart: the i-th thing
// that one brought.
func deliveryKey(guid string, i int) string {
	if i == 0 {
		return "delivery:" + guid
	}
	return fmt.Sprintf("delivery:%s:%d", guid, i)
}

func digest(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// record appends a remark's event. A key that is known is the same remark again,
// with one exception: somebody may edit a text there, back and there again within
// one of GitHub's whole seconds. Such edits are told apart by their deliveries.
func (h *Handlers) record(ctx context.Context, t solver.Thread, wake bool, e solver.NewEvent, f solver.Feedback) error {
	n, err := h.Store.Append(ctx, t, wake, e)
	if err != nil || n > 0 || !strings.HasPrefix(e.Key, editedKey) || f.Delivery == Reconciled {
		return err
	}
	events, err := h.Store.Events(ctx, t, 0)
	if err != nil {
		return err
	}
	for _, g := range remarks(events) {
		if identity(g) == identity(f) && g.MadeAt.Equal(f.MadeAt) && (g.Delivery == f.Delivery || g.Delivery == Reconciled) {
			return nil
		}
	}
	e.Key = deliveryKey(f.Delivery, 0)
	_, err = h.Store.Append(ctx, t, wake, e)
	return err
}

// overtaken reports whether the reconciliation has found this version of a
// remark, or one that came after it.
func overtaken(reconciled []solver.Event, hp happening) bool {
	mine := identity(solver.Feedback{Source: hp.remark.Source, Target: hp.target, Number: hp.number, URL: hp.url})
	if mine == "" {
		return false
	}
	for _, f := range remarks(reconciled) {
		if f.Delivery == Reconciled && identity(f) == mine && !f.MadeAt.Before(hp.madeAt) {
			return true
		}
	}
	return false
}

// version is what the event of a remark tells of its place among others.
func version(hp happening) solver.Feedback {
	comment := hp.target.Kind == "issue_comment" || hp.target.Kind == "review_comment"
	return solver.Feedback{Source: hp.remark.Source, Target: hp.target, First: comment && !hp.remark.Edited, MadeAt: hp.madeAt}
}

// remarks are the judged remarks in a log, accepted or not.
func remarks(events []solver.Event) []solver.Feedback {
	kinds := []solver.Kind{solver.KindFeedback, solver.KindIgnored, solver.KindControl, solver.KindQuestion}
	var list []solver.Feedback
	for _, e := range events {
		var f solver.Feedback
		if slices.Contains(kinds, e.Kind) && json.Unmarshal(e.Data, &f) == nil {
			list = append(list, f)
		}
	}
	return list
}

// reviewAnchor stands before a review's id in its address.
const reviewAnchor = "#pullrequestreview-"

// identity names the text that a remark is, whatever its version; empty for
// remarks that are no texts.
func identity(f solver.Feedback) string {
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
