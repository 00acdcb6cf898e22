package handlers

import (
	"context"
	"fmt"

	"github.com/pawlbot/pawl/solver"
)

// editorUnknown is why an edit that no webhook brought asks for nothing. By
// webhook only a writer's own edit counts; the REST API names the author of a text
// and never its editor, and a bot may edit what a writer wrote.
const editorUnknown = "who edited it is not known: no webhook told of the edit; write a new comment to ask for it"

// unattributed logs an edit of which the editor is not known, as ignored.
func (h *Handlers) unattributed(ctx context.Context, t solver.Thread, hp happening, n *solver.Snapshot) (string, error) {
	events, err := h.Store.Events(ctx, t, 0)
	if err != nil {
		return "", err
	}
	if holds(events, hp) {
		return "a webhook brought it meanwhile", nil
	}
	r := *hp.remark
	f := brief(solver.Feedback{
		Source: r.Source, By: r.Actor, Reason: editorUnknown, Number: hp.number, Raw: cut(r.Text),
		Target: hp.target, URL: hp.url, SHA: r.SHA, MadeAt: hp.madeAt, Delivery: ReconciledEdit, Snapshot: n,
	})
	_, err = h.Store.Append(ctx, t, false, solver.NewEvent{Key: hp.once, Kind: solver.KindIgnored, At: h.Now(), Data: f})
	return fmt.Sprintf("%s: %s", solver.KindIgnored, editorUnknown), err
}

// holds reports whether the log has the text of a remark as it is now.
func holds(events []solver.Event, hp happening) bool {
	mine := identity(solver.Feedback{Source: hp.remark.Source, Target: hp.target, Number: hp.number, URL: hp.url})
	last, ok := readLog(events).texts[mine]
	return ok && same(last, hp.remark.Text)
}
