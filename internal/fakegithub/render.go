package fakegithub

import (
	"fmt"
	"strings"
	"time"
)

// renderer makes GitHub's JSON objects for REST and webhooks.
type renderer struct {
	base  string // without a final slash
	began time.Time
}

// api returns the base of the REST API, with a final slash.
func (v renderer) api() string { return v.base + "/api/v3/" }

// apiOf and webOf return a repository's addresses, for programs and users.
func (v renderer) apiOf(r *repository) string { return v.api() + "repos/" + r.fullName() }

func (v renderer) webOf(r *repository) string { return v.base + "/" + r.fullName() }

// userLinks are a user object's address keys, without "_url".
const userLinks = "followers following{/other_user} gists{/gist_id} starred{/owner}{/repo} subscriptions organizations repos " +
	"events{/privacy} received_events"

func (v renderer) renderUser(a *account) obj {
	self := v.api() + "users/" + a.login
	body := obj{"login": a.login, "id": a.id, "node_id": nodeID("User", a.id), "type": a.kind, "site_admin": false,
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", v.base, a.id), "gravatar_id": "", "url": self,
		"html_url": v.base + "/" + strings.TrimSuffix(a.login, "[bot]"), "user_view_type": "public"}
	for _, link := range strings.Fields(userLinks) {
		name, _, _ := strings.Cut(link, "{")
		body[name+"_url"] = self + "/" + strings.Replace(link, "organizations", "orgs", 1)
	}
	if a.kind == "Bot" {
		body["html_url"] = v.base + "/apps/" + strings.TrimSuffix(a.login, "[bot]")
	}
	return body
}

// renderProfile renders an account's long form. The additional fields are null.
func (v renderer) renderProfile(a *account) obj {
	body := v.renderUser(a)
	for _, key := range []string{"name", "company", "blog", "location", "email", "hireable", "bio", "twitter_username"} {
		body[key] = nil
	}
	for _, key := range []string{"public_repos", "public_gists", "followers", "following"} {
		body[key] = 0
	}
	body["created_at"], body["updated_at"] = stamp(v.began), stamp(v.began)
	return body
}

// renderOrganization renders an organization's short form for webhooks.
func (v renderer) renderOrganization(a *account) obj {
	self := v.api() + "orgs/" + a.login
	body := obj{"login": a.login, "id": a.id, "node_id": nodeID("Organization", a.id), "url": self,
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", v.base, a.id), "description": nil}
	for _, link := range []string{"repos", "events", "hooks", "issues", "members{/member}", "public_members{/member}"} {
		name, _, _ := strings.Cut(link, "{")
		body[name+"_url"] = self + "/" + link
	}
	return body
}

func (v renderer) renderApp(a *app) obj {
	return obj{"id": a.id, "slug": a.slug, "node_id": nodeID("App", a.id), "owner": v.renderUser(a.owner), "name": a.slug,
		"description": "", "external_url": v.base, "html_url": v.base + "/apps/" + a.slug, "created_at": stamp(a.created),
		"updated_at": stamp(a.created), "permissions": a.permissions, "events": a.events}
}

func (v renderer) renderVia(a *app) any {
	if a == nil {
		return nil
	}
	return v.renderApp(a)
}

func (v renderer) renderInstallation(in *installation) obj {
	self := fmt.Sprintf("%sapp/installations/%d", v.api(), in.id)
	app := v.renderApp(in.app)
	return obj{"id": in.id, "account": v.renderUser(in.account), "repository_selection": "selected", "app_id": in.app.id,
		"app_slug": in.app.slug, "target_id": in.account.id, "target_type": in.account.kind, "permissions": app["permissions"],
		"events": app["events"], "access_tokens_url": self + "/access_tokens", "repositories_url": v.api() + "installation/repositories",
		"html_url": fmt.Sprintf("%s/settings/installations/%d", v.base, in.id), "created_at": stamp(in.created),
		"updated_at": stamp(in.created), "single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_at": stamp(in.suspended), "suspended_by": nil}
}

// repoLinks are a repository object's address keys, without "_url".
const repoLinks = "forks keys{/key_id} collaborators{/collaborator} teams hooks issue_events events assignees{/user} " +
	"branches{/branch} tags blobs{/sha} git_tags{/sha} git_refs{/sha} trees{/sha} statuses/{sha} languages stargazers " +
	"contributors subscribers subscription commits{/sha} git_commits{/sha} comments{/number} issue_comment{/number} " +
	"contents/{+path} compare/{base}...{head} merges archive downloads issues{/number} pulls{/number} milestones{/number} " +
	"notifications{?since,all,participating} labels{/name} releases{/id} deployments"

func (v renderer) renderRepo(r *repository) obj {
	self, web := v.apiOf(r), v.webOf(r)
	open := 0
	for _, t := range r.threads {
		if t.state == "open" {
			open++
		}
	}
	body := obj{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": !r.public,
		"visibility": map[bool]string{false: "private", true: "public"}[r.public], "owner": v.renderUser(r.owner), "html_url": web, "description": nil, "fork": false, "url": self,
		"created_at": stamp(r.created), "updated_at": stamp(r.pushed), "pushed_at": stamp(r.pushed), "git_url": "git://" + strings.TrimPrefix(web, "http://") + ".git",
		"ssh_url": "git@" + strings.TrimPrefix(web, "http://") + ".git", "clone_url": web + ".git", "svn_url": web, "homepage": nil,
		"size": 1, "stargazers_count": 0, "watchers_count": 0, "language": nil, "has_issues": true, "has_projects": true,
		"has_downloads": true, "has_wiki": false, "has_pages": false, "has_discussions": false, "forks_count": 0, "mirror_url": nil,
		"archived": false, "disabled": false, "open_issues_count": open, "license": nil, "allow_forking": true, "is_template": false,
		"web_commit_signoff_required": false, "topics": []string{}, "forks": 0, "open_issues": open, "watchers": 0,
		"default_branch": r.defaultBranch}
	for _, link := range strings.Fields(repoLinks) {
		name := strings.TrimRight(strings.SplitN(strings.SplitN(link, "{", 2)[0], "...", 2)[0], "/")
		path := strings.NewReplacer("issue_events", "issues/events", "issue_comment", "issues/comments", "git_tags", "git/tags",
			"git_refs", "git/refs", "git_commits", "git/commits", "blobs", "git/blobs", "trees", "git/trees").Replace(link)
		body[name+"_url"] = self + "/" + path
	}
	return body
}

func (v renderer) renderIssue(r *repository, t *thread) obj {
	self := fmt.Sprintf("%s/issues/%d", v.apiOf(r), t.number)
	web := fmt.Sprintf("%s/issues/%d", v.webOf(r), t.number)
	body := v.renderThread(r, t)
	body["id"], body["node_id"], body["url"], body["html_url"] = t.id, nodeID("Issue", t.id), self, web
	body["comments"], body["reactions"] = len(t.comments), v.renderReactions(self, t.reactions)
	body["repository_url"] = v.apiOf(r)
	body["labels_url"], body["events_url"], body["timeline_url"] = self+"/labels{/name}", self+"/events", self+"/timeline"
	body["state_reason"], body["performed_via_github_app"] = nil, v.renderVia(t.via)
	if t.reason != "" {
		body["state_reason"] = t.reason
	}
	if t.pull != nil {
		web = fmt.Sprintf("%s/pull/%d", v.webOf(r), t.number)
		body["html_url"], body["draft"] = web, t.pull.draft
		body["pull_request"] = obj{"url": strings.Replace(self, "/issues/", "/pulls/", 1), "html_url": web,
			"diff_url": web + ".diff", "patch_url": web + ".patch", "merged_at": stamp(t.pull.mergedAt)}
	}
	return body
}

func (v renderer) renderThread(r *repository, t *thread) obj {
	labels, assignees := []obj{}, []obj{}
	for _, name := range t.labels {
		labels = append(labels, v.renderLabel(r, name))
	}
	for _, a := range t.assignees {
		assignees = append(assignees, v.renderUser(a))
	}
	var first any
	if len(assignees) > 0 {
		first = assignees[0]
	}
	api := fmt.Sprintf("%s/issues/%d", v.apiOf(r), t.number)
	return obj{"number": t.number, "title": t.title, "body": textOrNull(t.body), "user": v.renderUser(t.author), "state": t.state,
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

func (v renderer) renderLabel(r *repository, name string) obj {
	id := int64(0)
	for _, c := range []byte(r.fullName() + "\x00" + name) {
		id = (id*31 + int64(c)) & (1<<40 - 1)
	}
	return obj{"id": id, "node_id": nodeID("Label", id), "url": v.apiOf(r) + "/labels/" + name,
		"name": name, "color": "ededed", "default": false, "description": nil}
}

// association derives author_association from the account's role.
func (r *repository) association(a *account) string {
	given := rank(r.roles[strings.ToLower(a.login)]) >= rank("read") // ignores everyone's read access to a public repository
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

func (v renderer) renderComment(r *repository, t *thread, c *comment) obj {
	self := fmt.Sprintf("%s/issues/comments/%d", v.apiOf(r), c.id)
	issue := v.renderIssue(r, t)
	return obj{"id": c.id, "node_id": nodeID("IssueComment", c.id), "url": self, "issue_url": issue["url"],
		"html_url": fmt.Sprintf("%s#issuecomment-%d", issue["html_url"], c.id), "user": v.renderUser(c.author), "body": c.body,
		"created_at": stamp(c.created), "updated_at": stamp(c.updated), "author_association": r.association(c.author),
		"reactions": v.renderReactions(self, c.reactions), "performed_via_github_app": v.renderVia(c.via)}
}

const reactionKinds = "+1 -1 laugh hooray confused heart rocket eyes"

func (v renderer) renderReactions(of string, list []reaction) obj {
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

func (v renderer) renderReaction(r reaction) obj {
	return obj{"id": r.id, "node_id": nodeID("Reaction", r.id), "user": v.renderUser(r.user), "content": r.content, "created_at": stamp(r.created)}
}

func (v renderer) renderPull(r *repository, t *thread) obj {
	p := t.pull
	self := fmt.Sprintf("%s/pulls/%d", v.apiOf(r), t.number)
	web := fmt.Sprintf("%s/pull/%d", v.webOf(r), t.number)
	issue := strings.Replace(self, "/pulls/", "/issues/", 1)
	statuses := v.apiOf(r) + "/statuses/" + p.headSHA
	body := v.renderThread(r, t)
	more := obj{"id": p.id, "node_id": nodeID("PullRequest", p.id), "url": self, "html_url": web, "diff_url": web + ".diff",
		"patch_url": web + ".patch", "issue_url": issue, "commits_url": self + "/commits", "review_comments_url": self + "/comments",
		"review_comment_url": v.apiOf(r) + "/pulls/comments{/number}", "statuses_url": statuses,
		"draft": p.draft, "head": v.renderSide(r, p.headRef, p.headSHA), "base": v.renderSide(r, p.baseRef, p.baseSHA),
		"merged_at": stamp(p.mergedAt), "merge_commit_sha": textOrNull(p.mergeSHA), "auto_merge": nil,
		"requested_reviewers": v.renderUsers(p.asked), "requested_teams": []obj{}, "merged": !p.mergedAt.IsZero(), "merged_by": nil,
		"mergeable": nil, "rebaseable": nil, "mergeable_state": "unknown",
		"comments": len(t.comments), "review_comments": len(p.comments), "maintainer_can_modify": false,
		"commits": p.diff.commits, "additions": p.diff.additions, "deletions": p.diff.deletions, "changed_files": p.diff.files}
	for key, value := range more {
		body[key] = value
	}
	if p.computed {
		body["mergeable"], body["rebaseable"], body["mergeable_state"] = p.diff.mergeable, p.diff.mergeable, r.mergeState(p)
	}
	if p.mergedBy != nil {
		body["merged_by"] = v.renderUser(p.mergedBy)
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

// pullDetails are a pull request's fields that lists and review events omit.
var pullDetails = []string{"merged", "mergeable", "rebaseable", "mergeable_state", "merged_by", "comments", "review_comments",
	"maintainer_can_modify", "commits", "additions", "deletions", "changed_files"}

func (v renderer) renderPullSimple(r *repository, t *thread) obj {
	body := v.renderPull(r, t)
	for _, key := range pullDetails {
		delete(body, key)
	}
	return body
}

func (v renderer) renderUsers(all []*account) []obj {
	list := []obj{}
	for _, a := range all {
		list = append(list, v.renderUser(a))
	}
	return list
}

// mergeState returns mergeable_state. It is "behind" only under the rule upToDate.
func (r *repository) mergeState(p *pull) string {
	switch {
	case !p.diff.mergeable:
		return "dirty"
	case p.draft:
		return "draft"
	case r.upToDate && p.diff.behind:
		return "behind"
	case !r.passes(p.baseRef, p.headSHA):
		return "blocked"
	case r.unstable(p.headSHA):
		return "unstable"
	}
	return "clean"
}

// renderSide renders a pull request's head or base; both are in the same repository.
func (v renderer) renderSide(r *repository, ref, sha string) obj {
	return obj{"label": r.owner.login + ":" + ref, "ref": ref, "sha": sha, "user": v.renderUser(r.owner), "repo": v.renderRepo(r)}
}

// renderReview renders a review for REST. Webhooks have a lower-case state and null for a missing text; see
// addReview.
func (s renderer) renderReview(r *repository, t *thread, v *review) obj {
	pull := fmt.Sprintf("%s/pulls/%d", s.apiOf(r), t.number)
	web := fmt.Sprintf("%s/pull/%d#pullrequestreview-%d", s.webOf(r), t.number, v.id)
	return obj{"id": v.id, "node_id": nodeID("PullRequestReview", v.id), "user": s.renderUser(v.author), "body": v.body,
		"state": v.state, "html_url": web, "pull_request_url": pull, "author_association": r.association(v.author),
		"submitted_at": stamp(v.submitted), "commit_id": v.commit,
		"_links": obj{"html": obj{"href": web}, "pull_request": obj{"href": pull}}}
}

func (v renderer) renderReviewComment(r *repository, t *thread, c *reviewComment) obj {
	pull := fmt.Sprintf("%s/pulls/%d", v.apiOf(r), t.number)
	self := fmt.Sprintf("%s/pulls/comments/%d", v.apiOf(r), c.id)
	web := fmt.Sprintf("%s/pull/%d#discussion_r%d", v.webOf(r), t.number, c.id)
	body := obj{"id": c.id, "node_id": nodeID("PullRequestReviewComment", c.id), "url": self, "html_url": web, "pull_request_url": pull,
		"pull_request_review_id": c.review, "diff_hunk": c.hunk, "path": c.path, "commit_id": t.pull.headSHA, "original_commit_id": c.commit,
		"user": v.renderUser(c.author), "body": c.body, "created_at": stamp(c.created), "updated_at": stamp(c.updated),
		"author_association": r.association(c.author), "line": c.line, "original_line": c.line, "side": "RIGHT", "start_line": nil,
		"original_start_line": nil, "start_side": nil, "position": c.line, "original_position": c.line, "subject_type": "line",
		"reactions": v.renderReactions(self, c.reactions),
		"_links":    obj{"self": obj{"href": self}, "html": obj{"href": web}, "pull_request": obj{"href": pull}}}
	if c.answers != 0 {
		body["in_reply_to_id"] = c.answers
	}
	return body
}

func (v renderer) renderCheckRun(r *repository, run *checkRun) obj {
	self := fmt.Sprintf("%s/check-runs/%d", v.apiOf(r), run.id)
	web := fmt.Sprintf("%s/runs/%d", v.webOf(r), run.id)
	pulls := []obj{}
	for _, t := range r.threads {
		if t.pull != nil && t.state == "open" && t.pull.headSHA == run.sha {
			pulls = append(pulls, v.renderPullStub(r, t))
		}
	}
	details := run.details
	if details == "" {
		details = v.base
	}
	return obj{"id": run.id, "node_id": nodeID("CheckRun", run.id), "name": run.name, "head_sha": run.sha, "external_id": run.externalID,
		"url": self, "html_url": web, "details_url": details, "status": run.status, "conclusion": textOrNull(run.conclusion),
		"started_at": stamp(run.started), "completed_at": stamp(run.completed), "check_suite": obj{"id": run.suite.id},
		"app": v.renderApp(run.suite.app), "pull_requests": pulls,
		"output": obj{"title": run.output.Title, "summary": run.output.Summary, "text": run.output.Text,
			"annotations_count": len(run.notes), "annotations_url": self + "/annotations"}}
}

// renderAnnotation adds all documented keys to an annotation.
func (v renderer) renderAnnotation(r *repository, run *checkRun, note obj) obj {
	body := obj{"blob_href": fmt.Sprintf("%s/blob/%s/%v", v.webOf(r), run.sha, note["path"])}
	for _, key := range []string{"path", "start_line", "end_line", "start_column", "end_column", "annotation_level", "title", "message", "raw_details"} {
		body[key] = note[key]
	}
	return body
}

// renderCheckRunEvent renders a check run for webhooks, with its whole suite.
func (v renderer) renderCheckRunEvent(r *repository, run *checkRun) obj {
	body := v.renderCheckRun(r, run)
	body["check_suite"] = obj{"id": run.suite.id, "node_id": nodeID("CheckSuite", run.suite.id), "head_branch": textOrNull(run.suite.branch),
		"head_sha": run.sha, "status": run.status, "conclusion": textOrNull(run.conclusion), "app": v.renderApp(run.suite.app),
		"pull_requests": body["pull_requests"], "before": nil, "after": run.sha, "created_at": stamp(run.suite.created), "updated_at": stamp(run.suite.created),
		"url": fmt.Sprintf("%s/check-suites/%d", v.apiOf(r), run.suite.id)}
	return body
}

// renderPullStub renders the short pull request in check runs.
func (v renderer) renderPullStub(r *repository, t *thread) obj {
	repo := obj{"id": r.id, "name": r.name, "url": v.apiOf(r)}
	return obj{"id": t.pull.id, "number": t.number, "url": fmt.Sprintf("%s/pulls/%d", v.apiOf(r), t.number),
		"head": obj{"ref": t.pull.headRef, "sha": t.pull.headSHA, "repo": repo},
		"base": obj{"ref": t.pull.baseRef, "sha": t.pull.baseSHA, "repo": repo}}
}
