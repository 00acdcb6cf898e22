package fakegithub

import (
	"fmt"
	"strings"
)

func (s *Server) renderPull(r *repository, t *thread) obj {
	p := t.pull
	self := fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(), r.fullName(), t.number)
	web := fmt.Sprintf("%s/%s/pull/%d", s.base, r.fullName(), t.number)
	issue := strings.Replace(self, "/pulls/", "/issues/", 1)
	statuses := s.APIURL() + "repos/" + r.fullName() + "/statuses/" + p.headSHA
	body := s.renderThread(r, t)
	more := obj{"id": p.id, "node_id": nodeID("PullRequest", p.id), "url": self, "html_url": web, "diff_url": web + ".diff",
		"patch_url": web + ".patch", "issue_url": issue, "commits_url": self + "/commits", "review_comments_url": self + "/comments",
		"review_comment_url": s.APIURL() + "repos/" + r.fullName() + "/pulls/comments{/number}", "statuses_url": statuses,
		"draft": p.draft, "head": s.renderSide(p.from, p.headRef, p.headSHA), "base": s.renderSide(r, p.baseRef, p.baseSHA),
		"merged_at": stamp(p.mergedAt), "merge_commit_sha": textOrNull(p.mergeSHA), "auto_merge": nil,
		"requested_reviewers": []obj{}, "requested_teams": []obj{}, "merged": !p.mergedAt.IsZero(), "merged_by": nil,
		"mergeable": p.diff.mergeable, "rebaseable": p.diff.mergeable, "mergeable_state": p.mergeState(),
		"comments": len(t.comments), "review_comments": len(p.comments), "maintainer_can_modify": p.from != r && t.via == nil,
		"commits": p.diff.commits, "additions": p.diff.additions, "deletions": p.diff.deletions, "changed_files": p.diff.files}
	for key, value := range more {
		body[key] = value
	}
	if p.mergedBy != nil {
		body["merged_by"] = s.renderUser(p.mergedBy)
	}
	links := obj{}
	for name, href := range map[string]string{"self": self, "html": web, "issue": issue, "comments": issue + "/comments",
		"review_comments": self + "/comments", "commits": self + "/commits", "statuses": statuses} {
		links[name] = obj{"href": href}
	}
	links["review_comment"] = obj{"href": body["review_comment_url"]}
	body["_links"] = links
	return body
}

// pullDetails are the fields of a pull request that GitHub leaves out of lists
// and of review events.
var pullDetails = []string{"merged", "mergeable", "rebaseable", "mergeable_state", "merged_by", "comments", "review_comments",
	"maintainer_can_modify", "commits", "additions", "deletions", "changed_files"}

// renderPullSimple is the short form of lists and of review events.
func (s *Server) renderPullSimple(r *repository, t *thread) obj {
	body := s.renderPull(r, t)
	for _, key := range pullDetails {
		delete(body, key)
	}
	return body
}

func (p *pull) mergeState() string {
	switch {
	case !p.diff.mergeable:
		return "dirty"
	case p.draft:
		return "draft"
	}
	return "clean"
}

// renderSide is the head or the base of a pull request. The repository is null
// when a fork was deleted since.
func (s *Server) renderSide(r *repository, ref, sha string) obj {
	side := obj{"label": r.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": s.renderUser(r.owner), "repo": nil}
	if !r.deleted {
		side["repo"] = s.renderRepo(r)
	}
	return side
}

// renderReview is a review as REST gives it. In webhooks the state is lower-case
// and a missing text is null; see addReview.
func (s *Server) renderReview(r *repository, t *thread, v *review) obj {
	pull := fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(), r.fullName(), t.number)
	web := fmt.Sprintf("%s/%s/pull/%d#pullrequestreview-%d", s.base, r.fullName(), t.number, v.id)
	return obj{"id": v.id, "node_id": nodeID("PullRequestReview", v.id), "user": s.renderUser(v.author), "body": v.body,
		"state": v.state, "html_url": web, "pull_request_url": pull, "author_association": r.association(v.author),
		"submitted_at": stamp(v.submitted), "commit_id": v.commit,
		"_links": obj{"html": obj{"href": web}, "pull_request": obj{"href": pull}}}
}

func (s *Server) renderReviewComment(r *repository, t *thread, c *reviewComment) obj {
	pull := fmt.Sprintf("%srepos/%s/pulls/%d", s.APIURL(), r.fullName(), t.number)
	self := fmt.Sprintf("%srepos/%s/pulls/comments/%d", s.APIURL(), r.fullName(), c.id)
	web := fmt.Sprintf("%s/%s/pull/%d#discussion_r%d", s.base, r.fullName(), t.number, c.id)
	return obj{"id": c.id, "node_id": nodeID("PullRequestReviewComment", c.id), "url": self, "html_url": web, "pull_request_url": pull,
		"pull_request_review_id": c.review, "diff_hunk": c.hunk, "path": c.path, "commit_id": t.pull.headSHA, "original_commit_id": c.commit,
		"user": s.renderUser(c.author), "body": c.body, "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"author_association": r.association(c.author), "line": c.line, "original_line": c.line, "side": "RIGHT", "start_line": nil,
		"original_start_line": nil, "start_side": nil, "position": c.line, "original_position": c.line, "subject_type": "line",
		"reactions": s.renderReactions(self, c.reactions),
		"_links":    obj{"self": obj{"href": self}, "html": obj{"href": web}, "pull_request": obj{"href": pull}}}
}
