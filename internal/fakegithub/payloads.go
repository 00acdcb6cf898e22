package fakegithub

import (
	"fmt"
	"strings"
)

// The functions in the payload files render GitHub's JSON objects, the same for
// REST and for webhooks.

// userLinks are the addresses of a user object; the key gets "_url".
const userLinks = "followers following{/other_user} gists{/gist_id} starred{/owner}{/repo} subscriptions organizations repos " +
	"events{/privacy} received_events"

func (s *Server) renderUser(a *account) obj {
	self := s.APIURL() + "users/" + a.login
	body := obj{"login": a.login, "id": a.id, "node_id": nodeID("User", a.id), "type": a.kind, "site_admin": false,
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", s.base, a.id), "gravatar_id": "", "url": self,
		"html_url": s.base + "/" + strings.TrimSuffix(a.login, "[bot]"), "user_view_type": "public"}
	for _, link := range strings.Fields(userLinks) {
		name, _, _ := strings.Cut(link, "{")
		body[name+"_url"] = self + "/" + strings.Replace(link, "organizations", "orgs", 1)
	}
	if a.kind == "Bot" {
		body["html_url"] = s.base + "/apps/" + strings.TrimSuffix(a.login, "[bot]")
	}
	return body
}

// renderProfile is the long form of an account, with nothing told of it.
func (s *Server) renderProfile(a *account) obj {
	body := s.renderUser(a)
	for _, key := range []string{"name", "company", "blog", "location", "email", "hireable", "bio", "twitter_username"} {
		body[key] = nil
	}
	for _, key := range []string{"public_repos", "public_gists", "followers", "following"} {
		body[key] = 0
	}
	body["created_at"], body["updated_at"] = stamp(s.world.began), stamp(s.world.began)
	return body
}

// renderOrganization is the short form that webhooks carry as "organization".
func (s *Server) renderOrganization(a *account) obj {
	self := s.APIURL() + "orgs/" + a.login
	body := obj{"login": a.login, "id": a.id, "node_id": nodeID("Organization", a.id), "url": self,
		"avatar_url": fmt.Sprintf("%s/avatars/u/%d", s.base, a.id), "description": nil}
	for _, link := range []string{"repos", "events", "hooks", "issues", "members{/member}", "public_members{/member}"} {
		name, _, _ := strings.Cut(link, "{")
		body[name+"_url"] = self + "/" + link
	}
	return body
}

func (s *Server) renderApp(a *app) obj {
	return obj{"id": a.id, "slug": a.slug, "node_id": nodeID("App", a.id), "owner": s.renderUser(a.owner), "name": a.slug,
		"description": "", "external_url": s.base, "html_url": s.base + "/apps/" + a.slug, "created_at": stamp(a.created),
		"updated_at": stamp(a.created), "permissions": a.permissions, "events": a.events}
}

func (s *Server) renderVia(a *app) any {
	if a == nil {
		return nil
	}
	return s.renderApp(a)
}

func (s *Server) renderInstallation(in *installation) obj {
	self := fmt.Sprintf("%sapp/installations/%d", s.APIURL(), in.id)
	app := s.renderApp(s.world.app)
	return obj{"id": in.id, "account": s.renderUser(in.account), "repository_selection": "selected", "app_id": s.world.app.id,
		"app_slug": s.world.app.slug, "target_id": in.account.id, "target_type": in.account.kind, "permissions": app["permissions"],
		"events": app["events"], "access_tokens_url": self + "/access_tokens", "repositories_url": s.APIURL() + "installation/repositories",
		"html_url": fmt.Sprintf("%s/settings/installations/%d", s.base, in.id), "created_at": stamp(in.created),
		"updated_at": stamp(in.created), "single_file_name": nil, "has_multiple_single_files": false, "single_file_paths": []string{},
		"suspended_at": stamp(in.suspended), "suspended_by": nil}
}

// repoLinks are the addresses of a repository object; the key gets "_url".
const repoLinks = "forks keys{/key_id} collaborators{/collaborator} teams hooks issue_events events assignees{/user} " +
	"branches{/branch} tags blobs{/sha} git_tags{/sha} git_refs{/sha} trees{/sha} statuses/{sha} languages stargazers " +
	"contributors subscribers subscription commits{/sha} git_commits{/sha} comments{/number} issue_comment{/number} " +
	"contents/{+path} compare/{base}...{head} merges archive downloads issues{/number} pulls{/number} milestones{/number} " +
	"notifications{?since,all,participating} labels{/name} releases{/id} deployments"

func (s *Server) renderRepo(r *repository) obj {
	self, web := s.APIURL()+"repos/"+r.fullName(), s.base+"/"+r.fullName()
	open := 0
	for _, t := range r.threads {
		if t.state == "open" {
			open++
		}
	}
	body := obj{"id": r.id, "node_id": nodeID("Repository", r.id), "name": r.name, "full_name": r.fullName(), "private": !r.public,
		"visibility": r.visibility(), "owner": s.renderUser(r.owner), "html_url": web, "description": nil, "fork": r.parent != nil, "url": self,
		"created_at": stamp(r.created), "updated_at": stamp(r.pushed), "pushed_at": stamp(r.pushed), "git_url": "git://" + strings.TrimPrefix(web, "http://") + ".git",
		"ssh_url": "git@" + strings.TrimPrefix(web, "http://") + ".git", "clone_url": web + ".git", "svn_url": web, "homepage": nil,
		"size": 1, "stargazers_count": 0, "watchers_count": 0, "language": nil, "has_issues": true, "has_projects": true,
		"has_downloads": true, "has_wiki": false, "has_pages": false, "has_discussions": false, "forks_count": len(s.world.forksOf(r)), "mirror_url": nil,
		"archived": false, "disabled": false, "open_issues_count": open, "license": nil, "allow_forking": true, "is_template": false,
		"web_commit_signoff_required": false, "topics": []string{}, "forks": len(s.world.forksOf(r)), "open_issues": open, "watchers": 0,
		"default_branch": r.defaultBranch}
	for _, link := range strings.Fields(repoLinks) {
		name := strings.TrimRight(strings.SplitN(strings.SplitN(link, "{", 2)[0], "...", 2)[0], "/")
		path := strings.NewReplacer("issue_events", "issues/events", "issue_comment", "issues/comments", "git_tags", "git/tags",
			"git_refs", "git/refs", "git_commits", "git/commits", "blobs", "git/blobs", "trees", "git/trees").Replace(link)
		body[name+"_url"] = self + "/" + path
	}
	return body
}
