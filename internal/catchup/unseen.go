package catchup

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/handlers"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/thread"
)

// there is an issue or pull request as GitHub shows it now.
type there struct {
	forge.Issue
	pull     forge.Pull // of a pull request
	comments []forge.Comment
	reviews  []forge.Review
	remarks  []forge.ReviewComment
}

// here is what a thread's log holds of GitHub.
type here struct {
	began  time.Time                  // when somebody who may first asked Pawl to work here; before that it did not listen
	texts  map[string]thread.Feedback // the newest version of each, by identity
	body   string                     // the thread's description as the last snapshot had it
	bodied bool
	// closed tells of each number whether the last change closed it.
	closed map[int]bool
}

func readLog(events []thread.Event, s thread.State) here {
	l := here{texts: handlers.Texts(events), closed: map[int]bool{}}
	if len(s.Feedback) > 0 {
		l.began = s.Feedback[0].MadeAt
		if l.began.IsZero() { // a button
			l.began = s.Feedback[0].At
		}
	}
	for _, e := range events {
		var n *thread.Details
		if e.Kind == thread.KindThread {
			var c thread.Change
			if json.Unmarshal(e.Data, &c) != nil {
				continue
			}
			switch c.What {
			case "closed", "merged", "pull_closed", "pull_merged":
				l.closed[c.Number] = true
			case "reopened", "pull_reopened":
				l.closed[c.Number] = false
			}
			n = c.Snapshot
		} else if list := handlers.Remarks([]thread.Event{e}); len(list) > 0 {
			n = list[0].Snapshot
		}
		if n != nil && n.Title != "" {
			l.body, l.bodied = n.Body, true
		}
	}
	return l
}

// unseen is what GitHub shows and the log does not hold.
func unseen(now there, l here, s thread.State, app forge.App, t thread.ID, repo forge.Repo) []handlers.Activity {
	of := handlers.About(repo, now.Issue, now.IsPull(), now.pull.Head, now.pull.Base)
	var activities []handlers.Activity
	if now.Number == t.Number {
		activities = append(activities, unseenDescription(of, now, l)...)
	}
	for _, c := range now.comments {
		activities = append(activities, unseenText(of, c, policy.FromComment, "issue_comment", l, app)...)
	}
	for _, r := range now.reviews {
		activities = append(activities, unseenReview(of, r, l, app)...)
	}
	for _, r := range now.remarks {
		for _, it := range unseenText(of, r.Comment, policy.FromReviewComment, "review_comment", l, app) {
			it.Remark.SHA, it.Remark.Name = r.SHA, fmt.Sprintf("%s:%d", r.Path, r.Line)
			activities = append(activities, it)
		}
	}
	return append(activities, unseenState(of, now, l, s, t)...)
}

// unseenText is a comment that was written or edited. Who edited it the REST API does not tell, so only a
// comment as it was written counts as its author's.
func unseenText(of handlers.Activity, c forge.Comment, source policy.Source, kind string, l here, app forge.App) []handlers.Activity {
	last, known := l.texts[fmt.Sprintf("%s:%d", kind, c.ID)]
	r := feedback.Remark{Source: source, Actor: c.Author, Author: c.Author, App: c.App.ID, Text: c.Body}
	it := of
	it.Target, it.URL, it.MadeAt, it.Remark = thread.Target{Kind: kind, ID: c.ID}, c.HTMLURL, c.Updated, &r
	switch {
	case c.App.ID == app.ID || app.BotID != 0 && c.Author.ID == app.BotID:
		return nil
	case !known && c.Created.After(l.began) && c.Updated.Equal(c.Created):
		it.Key = handlers.MadeKey(kind, c.ID)
	case !known && c.Created.After(l.began), known && c.Updated.After(last.MadeAt) && !handlers.Same(last, c.Body):
		r.Edited, r.Actor, it.Anonymous = true, somebody(), true
		it.Key = fmt.Sprintf("found:edited:%s:%d:%d:%s", kind, c.ID, c.Updated.Unix(), handlers.Digest(c.Body))
	default:
		return nil
	}
	return []handlers.Activity{it}
}

// somebody is who did what GitHub's REST API tells without a name.
func somebody() feedback.Actor { return feedback.Actor{Login: "somebody"} }

// unseenReview is a review, as its author wrote it: GitHub does not tell whether one was edited.
func unseenReview(of handlers.Activity, r forge.Review, l here, app forge.App) []handlers.Activity {
	state := strings.ToLower(r.State)
	_, known := l.texts[fmt.Sprintf("review:%d", r.ID)]
	if known || state == "pending" || state == "dismissed" || !r.Submitted.After(l.began) || r.App.ID == app.ID || app.BotID != 0 && r.Author.ID == app.BotID {
		return nil
	}
	return handlers.Reviewed(of, r, &feedback.Remark{Source: policy.FromReview, Actor: r.Author, Author: r.Author, App: r.App.ID, Text: r.Body})
}

// unseenDescription is an edit of the thread's description by somebody, against the log's last snapshot. A pull
// request that Pawl opened for an issue has none, so its edits are left to webhooks.
func unseenDescription(of handlers.Activity, now there, l here) []handlers.Activity {
	last, known := l.texts[fmt.Sprintf("description:%d", now.Number)]
	if _, changed := feedback.DescriptionDiff(l.body, now.Body); !l.bodied || !changed || known && handlers.Same(last, now.Body) {
		return nil
	}
	it := of
	it.Anonymous = true
	it.Target, it.MadeAt = thread.Target{Kind: "issue", ID: int64(now.Number)}, now.Updated
	// Any change of the thread moves its time, so the text alone is the version.
	it.Key = fmt.Sprintf("found:description:%d:%s", now.Number, handlers.Digest(feedback.Content(now.Body)))
	it.Remark = &feedback.Remark{Source: policy.FromDescription, Edited: true, Actor: somebody(), Author: now.Author, Text: now.Body, Was: l.body, HasWas: true}
	return []handlers.Activity{it}
}

// unseenState is the end, the return, or a new head of an issue or pull request.
func unseenState(of handlers.Activity, now there, l here, s thread.State, t thread.ID) []handlers.Activity {
	change := func(what, by, detail, key string) []handlers.Activity {
		it := of
		it.Key, it.Change = key, &thread.Change{What: what, By: by, Detail: detail, MadeAt: now.Closed}
		return []handlers.Activity{it}
	}
	number := 0 // as changes of the thread itself are logged
	if now.Number != t.Number {
		number = now.Number
	}
	closed := now.State == "closed"
	switch {
	case closed && !l.closed[number]:
		by, what := cmp.Or(now.ClosedBy.Login, "somebody"), "closed"
		if now.pull.Merged() {
			what = "merged"
		}
		return change(what, by, "", handlers.ClosedKey(now.Number, now.Closed, what == "merged"))
	case !closed && l.closed[number]:
		return change("reopened", "somebody", "", fmt.Sprintf("found:reopened:%d:%d", now.Number, now.Updated.Unix()))
	case !closed && now.IsPull() && s.Snapshot.HeadSHA != "" && s.Snapshot.HeadSHA != now.pull.Head.SHA:
		return change("head_moved", "somebody", now.pull.Head.SHA, fmt.Sprintf("found:head:%d:%s", now.Number, now.pull.Head.SHA))
	}
	return nil
}
