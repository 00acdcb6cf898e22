package fakegithub

import (
	"fmt"
	"slices"
	"strings"
)

// labelled reports whether a thread has every label in a comma-separated list. It ignores letter case.
func (t *thread) labelled(names string) bool {
	for _, name := range strings.Split(names, ",") {
		if name != "" && !slices.ContainsFunc(t.labels, func(l string) bool { return strings.EqualFold(l, name) }) {
			return false
		}
	}
	return true
}

// listEvents lists an issue's label and title changes, oldest first.
func (w issues) listEvents(c *call, t *thread) *reply {
	return page(c, t.events, func(e issueEvent) obj {
		body := obj{"id": e.id, "node_id": nodeID("Event", e.id), "url": fmt.Sprintf("%s/issues/events/%d", w.apiOf(c.repo), e.id), "actor": w.renderUser(e.actor),
			"event": e.event, "commit_id": nil, "commit_url": nil, "created_at": stamp(e.at), "performed_via_github_app": nil}
		if e.label != "" {
			body["label"] = obj{"name": e.label, "color": "ededed"}
		} else {
			body["rename"] = obj{"from": e.from, "to": e.to}
		}
		return body
	}, array)
}

func (w issues) labelAction(r *repository, t *thread, action, name string, by *account) {
	t.updated = w.now()
	t.events = append(t.events, issueEvent{id: w.newID(), event: action, actor: by, at: t.updated, label: name})
	w.emitThread(r, t, action, by, obj{"label": w.renderLabel(r, name)})
}

// Assign accepts any account. GitHub allows only a few Apps' bots as assignees.
func (w issues) Assign(repo string, number int, as, whom string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		to, err := w.account(whom)
		if err != nil {
			return err
		}
		t.assignees, t.updated = append(t.assignees, to), w.now()
		w.emitThread(r, t, "assigned", by, obj{"assignee": w.renderUser(to)})
		return nil
	})
}

func (w issues) AddLabel(repo string, number int, as, label string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if !slices.Contains(t.labels, label) {
			t.labels = append(t.labels, label)
			w.labelAction(r, t, "labeled", label, by)
		}
		return nil
	})
}

func (w issues) RemoveLabel(repo string, number int, as, label string) error {
	return w.actOn(repo, number, as, func(r *repository, t *thread, by *account) error {
		if i := slices.Index(t.labels, label); i >= 0 {
			t.labels = slices.Delete(t.labels, i, i+1)
			w.labelAction(r, t, "unlabeled", label, by)
		}
		return nil
	})
}
