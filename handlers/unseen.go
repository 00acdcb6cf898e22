package handlers

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver"
)

// there is an issue or pull request as GitHub shows it now.
type there struct {
	forge.Changed
	pull     forge.Pull // of a pull request
	comments []forge.Comment
	reviews  []forge.Review
	remarks  []forge.ReviewComment
}

// here is what a thread's log holds of GitHub.
type here struct {
	// began is when Pawl was first asked to work here by somebody who may. What
	// was said before was said when Pawl did not listen.
	began time.Time
	texts map[string]solver.Feedback // the newest version of each, by identity
	// body is the thread's description as the last snapshot had it.
	body   string
	bodied bool
	// closed tells of each number whether the last change closed it.
	closed map[int]bool
}

func readLog(events []solver.Event) here {
	l := here{texts: map[string]solver.Feedback{}, closed: map[int]bool{}}
	for _, e := range events {
		var n *solver.Snapshot
		if e.Kind == solver.KindThread {
			var c solver.Change
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
		} else if list := remarks([]solver.Event{e}); len(list) > 0 {
			f := list[0]
			n = f.Snapshot
			if l.began.IsZero() && e.Kind == solver.KindFeedback {
				if l.began = f.MadeAt; l.began.IsZero() { // a button
					l.began = e.At
				}
			}
			if last, ok := l.texts[identity(f)]; !ok || !f.MadeAt.Before(last.MadeAt) {
				l.texts[identity(f)] = f
			}
		}
		if n != nil && n.Title != "" {
			l.body, l.bodied = n.Body, true
		}
	}
	return l
}

// unseen is what GitHub shows and the log does not hold.
func unseen(now there, l here, s solver.State, app forge.App, t solver.Thread, repo forge.Repo) []happening {
	of := happening{repo: repo, number: now.Number, url: now.HTMLURL, snapshot: solver.Snapshot{
		Installation: repo.Installation, RepoID: repo.ID, Title: now.Title, Body: now.Body, Author: now.Author.Login,
		URL: now.HTMLURL, Pull: now.IsPull,
	}}
	if now.IsPull {
		of.snapshot.HeadRef, of.snapshot.HeadSHA, of.snapshot.HeadRepoID = now.pull.Head.Ref, now.pull.Head.SHA, now.pull.Head.RepoID
		of.snapshot.BaseRef = now.pull.Base.Ref
	}
	var hs []happening
	if now.Number == t.Number {
		hs = append(hs, unseenDescription(of, now, l)...)
	}
	for _, c := range now.comments {
		hs = append(hs, unseenText(of, c, policy.FromComment, "issue_comment", l, app)...)
	}
	for _, r := range now.reviews {
		hs = append(hs, unseenReview(of, r, l, app)...)
	}
	for _, r := range now.remarks {
		for _, hp := range unseenText(of, r.Comment, policy.FromReviewComment, "review_comment", l, app) {
			hp.remark.SHA, hp.remark.Name = r.SHA, fmt.Sprintf("%s:%d", r.Path, r.Line)
			hs = append(hs, hp)
		}
	}
	return append(hs, unseenState(of, now, l, s, t)...)
}

// unseenText is a comment that was written or edited. Who edited it the REST API
// does not tell: its author, or anybody else who may write, a bot among them. So
// only a comment as it was written counts as its author's.
func unseenText(of happening, c forge.Comment, source policy.Source, kind string, l here, app forge.App) []happening {
	last, known := l.texts[fmt.Sprintf("%s:%d", kind, c.ID)]
	who := person(c.Author)
	r := policy.Remark{Source: source, Actor: who, Author: who, App: c.AppID, Text: c.Body}
	hp := of
	hp.target, hp.url, hp.madeAt, hp.remark = solver.Target{Kind: kind, ID: c.ID}, c.HTMLURL, c.Updated, &r
	switch {
	case c.AppID == app.ID || app.BotID != 0 && c.Author.ID == app.BotID:
		return nil
	case !known && c.Created.After(l.began) && c.Updated.Equal(c.Created):
		hp.once = once("created", kind, c.ID, c.Updated, c.Body)
	case !known && c.Created.After(l.began), known && c.Updated.After(last.MadeAt) && !same(last, c.Body):
		r.Edited, r.Actor, hp.anonymous = true, somebody(), true
		hp.once = "found:" + once("edited", kind, c.ID, c.Updated, c.Body)
	default:
		return nil
	}
	return []happening{hp}
}

// somebody is who did what GitHub's REST API tells without a name.
func somebody() policy.Actor { return policy.Actor{Login: "somebody"} }

// same reports whether the log holds a text as it is, as far as it kept it: of
// an ignored one it keeps the beginning, of Pawl's own nothing.
func same(last solver.Feedback, text string) bool {
	return last.Own || last.Raw == text || len(last.Raw) >= maxIgnored-3 && strings.HasPrefix(text, strings.TrimSuffix(last.Raw, cutNote))
}

// unseenReview is a review as a whole. GitHub does not tell whether one was
// edited, so it counts as its author wrote it.
func unseenReview(of happening, r forge.Review, l here, app forge.App) []happening {
	state := strings.ToLower(r.State)
	_, known := l.texts[fmt.Sprintf("review:%d", r.ID)]
	if known || state == "pending" || state == "dismissed" || !r.Submitted.After(l.began) || r.AppID == app.ID || app.BotID != 0 && r.Author.ID == app.BotID {
		return nil
	}
	who := person(r.Author)
	hp := of
	hp.url, hp.madeAt, hp.once = r.HTMLURL, r.Submitted, once("created", "review", r.ID, r.Submitted, "")
	hp.remark = &policy.Remark{Source: policy.FromReview, Actor: who, Author: who, App: r.AppID, Text: r.Body, State: state, SHA: r.SHA}
	return append([]happening{hp}, reviewSignal(hp, r.ID, r.State, r.SHA, who)...)
}

// unseenDescription is an edit of the thread's description, by whom is not known.
// The log's last snapshot stands in for the old text. A pull request that Pawl
// opened for an issue has no old text in the log, so its edits are left to
// webhooks.
func unseenDescription(of happening, now there, l here) []happening {
	last, known := l.texts[fmt.Sprintf("description:%d", now.Number)]
	if _, changed := policy.DescriptionDiff(l.body, now.Body); !l.bodied || !changed || known && same(last, now.Body) {
		return nil
	}
	hp := of
	hp.anonymous = true
	hp.target, hp.madeAt = solver.Target{Kind: "issue", ID: int64(now.Number)}, now.Updated
	// Any change of the thread moves its time, so the text alone is the version.
	hp.once = fmt.Sprintf("found:description:%d:%s", now.Number, digest(policy.Content(now.Body)))
	hp.remark = &policy.Remark{Source: policy.FromDescription, Edited: true, Actor: somebody(), Author: person(now.Author), Text: now.Body, Was: l.body, HasWas: true}
	return []happening{hp}
}

// unseenState is the end, the return, or a new head of an issue or pull request.
func unseenState(of happening, now there, l here, s solver.State, t solver.Thread) []happening {
	change := func(what, by, detail, once string) []happening {
		hp := of
		hp.once, hp.change = once, &solver.Change{What: what, By: by, Detail: detail, MadeAt: now.Closed}
		return []happening{hp}
	}
	number := 0 // as changes of the thread itself are logged
	if now.Number != t.Number {
		number = now.Number
	}
	closed := now.State == "closed"
	switch {
	case closed && !l.closed[number]:
		by, what := now.ClosedBy, "closed"
		if by == "" {
			by = "somebody"
		}
		if now.Merged || now.pull.Merged {
			what = "merged"
		}
		return change(what, by, "", closedKey(now.Number, now.Closed, what == "merged"))
	case !closed && l.closed[number]:
		return change("reopened", "somebody", "", fmt.Sprintf("found:reopened:%d:%d", now.Number, now.Updated.Unix()))
	case !closed && now.IsPull && s.Snapshot.HeadSHA != "" && s.Snapshot.HeadSHA != now.pull.Head.SHA:
		return change("head_moved", "somebody", now.pull.Head.SHA, fmt.Sprintf("found:head:%d:%s", now.Number, now.pull.Head.SHA))
	}
	return nil
}

func person(a forge.Actor) policy.Actor {
	kind := "User"
	if a.Bot {
		kind = "Bot"
	}
	return policy.Actor{ID: a.ID, Login: a.Login, Type: kind}
}
