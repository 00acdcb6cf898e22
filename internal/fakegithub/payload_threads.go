package fakegithub

import (
	"fmt"
	"strings"
)

func (s *Server) renderIssue(r *repository, t *thread) obj {
	self := fmt.Sprintf("%srepos/%s/issues/%d", s.APIURL(), r.fullName(), t.number)
	web := fmt.Sprintf("%s/%s/issues/%d", s.base, r.fullName(), t.number)
	body := s.renderThread(r, t)
	body["id"], body["node_id"], body["url"], body["html_url"] = t.id, nodeID("Issue", t.id), self, web
	body["comments"], body["reactions"] = len(t.comments), s.renderReactions(self, t.reactions)
	body["repository_url"] = s.APIURL() + "repos/" + r.fullName()
	body["labels_url"], body["events_url"], body["timeline_url"] = self+"/labels{/name}", self+"/events", self+"/timeline"
	body["state_reason"], body["performed_via_github_app"] = nil, s.renderVia(t.via)
	if t.reason != "" {
		body["state_reason"] = t.reason
	}
	if t.pull != nil {
		web = fmt.Sprintf("%s/%s/pull/%d", s.base, r.fullName(), t.number)
		body["html_url"], body["draft"] = web, t.pull.draft
		body["pull_request"] = obj{"url": strings.Replace(self, "/issues/", "/pulls/", 1), "html_url": web,
			"diff_url": web + ".diff", "patch_url": web + ".patch", "merged_at": stamp(t.pull.mergedAt)}
	}
	return body
}

// renderThread has the fields that issues and pull requests share.
func (s *Server) renderThread(r *repository, t *thread) obj {
	labels, assignees := []obj{}, []obj{}
	for _, name := range t.labels {
		labels = append(labels, s.renderLabel(r, name))
	}
	for _, a := range t.assignees {
		assignees = append(assignees, s.renderUser(a))
	}
	var first any
	if len(assignees) > 0 {
		first = assignees[0]
	}
	api := fmt.Sprintf("%srepos/%s/issues/%d", s.APIURL(), r.fullName(), t.number)
	return obj{"number": t.number, "title": t.title, "body": textOrNull(t.body), "user": s.renderUser(t.author), "state": t.state,
		"locked": false, "active_lock_reason": nil, "assignee": first, "assignees": assignees, "labels": labels, "milestone": nil,
		"created_at": stamp(t.created), "updated_at": stamp(t.updated), "closed_at": stamp(t.closed),
		"author_association": r.association(t.author), "comments_url": api + "/comments"}
}

func textOrNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func (s *Server) renderLabel(r *repository, name string) obj {
	id := int64(0)
	for _, c := range []byte(r.fullName() + "\x00" + name) {
		id = (id*31 + int64(c)) & (1<<40 - 1)
	}
	return obj{"id": id, "node_id": nodeID("Label", id), "url": s.APIURL() + "repos/" + r.fullName() + "/labels/" + name,
		"name": name, "color": "ededed", "default": false, "description": nil}
}

// association is GitHub's author_association, from the role here.
func (r *repository) association(a *account) string {
	given := rank(r.roles[strings.ToLower(a.login)]) >= rank("read") // not what a public repository lets everybody do
	switch {
	case a.id == r.owner.id:
		return "OWNER"
	case a.kind == "User" && given && r.owner.kind == "Organization":
		return "MEMBER"
	case a.kind == "User" && given:
		return "COLLABORATOR"
	}
	return "NONE"
}

func (s *Server) renderComment(r *repository, t *thread, c *comment) obj {
	self := fmt.Sprintf("%srepos/%s/issues/comments/%d", s.APIURL(), r.fullName(), c.id)
	issue := s.renderIssue(r, t)
	return obj{"id": c.id, "node_id": nodeID("IssueComment", c.id), "url": self, "issue_url": issue["url"],
		"html_url": fmt.Sprintf("%s#issuecomment-%d", issue["html_url"], c.id), "user": s.renderUser(c.author), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "author_association": r.association(c.author),
		"reactions": s.renderReactions(self, c.reactions), "performed_via_github_app": s.renderVia(c.via)}
}

// reactionKinds are the contents that GitHub accepts.
const reactionKinds = "+1 -1 laugh hooray confused heart rocket eyes"

func (s *Server) renderReactions(of string, list []reaction) obj {
	body := obj{"url": of + "/reactions", "total_count": len(list)}
	for _, kind := range strings.Fields(reactionKinds) {
		n := 0
		for _, r := range list {
			if r.content == kind {
				n++
			}
		}
		body[kind] = n
	}
	return body
}

func (s *Server) renderReaction(r reaction) obj {
	return obj{"id": r.id, "node_id": nodeID("Reaction", r.id), "user": s.renderUser(r.user), "content": r.content, "created_at": stamp(r.created)}
}
