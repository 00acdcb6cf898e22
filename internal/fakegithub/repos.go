package fakegithub

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// getRepo answers with the long form, which no other answer has.
func (s *Server) getRepo(c *call) *reply {
	body := s.renderRepo(c.repo)
	body["network_count"], body["subscribers_count"], body["custom_properties"] = 0, 0, obj{}
	if parent := c.repo.parent; parent != nil && !parent.deleted {
		body["parent"], body["source"] = s.renderRepo(parent), s.renderRepo(parent)
	}
	return ok(body)
}

// getContents answers with a file in base64 or with the list of a directory.
func (s *Server) getContents(c *call) *reply {
	r, file := c.repo, strings.Trim(c.params["path"], "/")
	ref := c.query("ref", r.defaultBranch)
	sha, found := s.resolve(c, ref)
	if !found {
		if len(r.branches) == 0 {
			return problem(http.StatusNotFound, "This repository is empty.")
		}
		return problem(http.StatusNotFound, "No commit found for the ref "+ref)
	}
	kind, id, err := r.git.object(c.context(), sha+":"+file)
	switch {
	case err != nil:
		return notFound()
	case kind == "blob":
		content, err := r.git.run(c.context(), nil, "cat-file", "blob", id)
		if err != nil {
			return problem(http.StatusInternalServerError, err.Error())
		}
		body := s.renderContent(r, ref, "file", file, id, len(content))
		body["encoding"], body["content"] = "base64", lines60(base64.StdEncoding.EncodeToString(content))
		return ok(body)
	}
	entries, err := r.git.list(c.context(), id)
	if err != nil {
		return problem(http.StatusInternalServerError, err.Error())
	}
	list := []obj{}
	for _, e := range entries {
		list = append(list, s.renderContent(r, ref, e.kind, path.Join(file, e.name), e.sha, e.size))
	}
	return ok(list)
}

func (s *Server) renderContent(r *repository, ref, kind, file, sha string, size int) obj {
	self := fmt.Sprintf("%srepos/%s/contents/%s?ref=%s", s.APIURL(), r.fullName(), file, ref)
	blob := fmt.Sprintf("%srepos/%s/git/blobs/%s", s.APIURL(), r.fullName(), sha)
	html := fmt.Sprintf("%s/%s/blob/%s/%s", s.base, r.fullName(), ref, file)
	return obj{"type": kind, "name": path.Base(file), "path": file, "sha": sha, "size": size, "url": self,
		"html_url": html, "git_url": blob, "download_url": nil, "_links": obj{"self": self, "git": blob, "html": html}}
}

// lines60 breaks base64 as GitHub does.
func lines60(text string) string {
	var b strings.Builder
	for len(text) > 0 {
		n := min(60, len(text))
		b.WriteString(text[:n] + "\n")
		text = text[n:]
	}
	return b.String()
}

// resolve turns a branch, "heads/x", "refs/heads/x" or a commit into a commit.
func (s *Server) resolve(c *call, ref string) (string, bool) {
	name := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/")
	if sha := c.repo.branches[name]; sha != "" {
		return sha, true
	}
	if !isHex(ref) {
		return "", false
	}
	kind, sha, err := c.repo.git.object(c.context(), ref)
	return sha, err == nil && kind == "commit"
}

func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 40 && strings.Trim(s, "0123456789abcdef") == ""
}

func (s *Server) getRef(c *call) *reply {
	name, isHead := strings.CutPrefix(c.params["ref"], "heads/")
	sha := c.repo.branches[name]
	if !isHead || sha == "" {
		return notFound()
	}
	api := s.APIURL() + "repos/" + c.repo.fullName()
	return ok(obj{"ref": "refs/heads/" + name, "node_id": nodeID("Ref", c.repo.id), "url": api + "/git/refs/heads/" + name,
		"object": obj{"type": "commit", "sha": sha, "url": api + "/git/commits/" + sha}})
}

func (s *Server) deleteRef(c *call) *reply {
	name, isHead := strings.CutPrefix(c.params["ref"], "heads/")
	if !isHead || c.repo.branches[name] == "" {
		return problem(http.StatusUnprocessableEntity, "Reference does not exist")
	}
	if slices.Contains(c.repo.protected, name) {
		return problem(http.StatusUnprocessableEntity, "Cannot delete this protected branch")
	}
	if name == c.repo.defaultBranch {
		return problem(http.StatusUnprocessableEntity, "Cannot delete the default branch")
	}
	if err := s.moveRef(c.context(), c.repo, c.who.account(), "refs/heads/"+name, ""); err != nil {
		return problem(http.StatusInternalServerError, err.Error())
	}
	return noContent()
}

func (s *Server) getBranch(c *call) *reply {
	name := c.params["branch"]
	sha := c.repo.branches[name]
	if sha == "" {
		return problem(http.StatusNotFound, "Branch not found")
	}
	commit, err := c.repo.git.commit(c.context(), sha)
	if err != nil {
		return problem(http.StatusInternalServerError, err.Error())
	}
	api := s.APIURL() + "repos/" + c.repo.fullName()
	return ok(obj{"name": name, "protected": slices.Contains(c.repo.protected, name), "protection": obj{"enabled": slices.Contains(c.repo.protected, name)}, "protection_url": api + "/branches/" + name + "/protection",
		"_links": obj{"self": api + "/branches/" + name, "html": s.base + "/" + c.repo.fullName() + "/tree/" + name},
		"commit": s.renderCommit(c.repo, commit)})
}

func (s *Server) renderCommit(r *repository, commit commitInfo) obj {
	api, web := s.APIURL()+"repos/"+r.fullName(), s.base+"/"+r.fullName()
	parents := []obj{}
	for _, p := range commit.parents {
		parents = append(parents, obj{"sha": p, "url": api + "/commits/" + p, "html_url": web + "/commit/" + p})
	}
	person := obj{"name": commit.name, "email": commit.email, "date": stamp(commit.at)}
	self := api + "/commits/" + commit.sha
	return obj{"sha": commit.sha, "node_id": nodeID("Commit", r.id), "url": self, "html_url": web + "/commit/" + commit.sha,
		"comments_url": self + "/comments", "author": nil, "committer": nil, "parents": parents,
		"commit": obj{"message": commit.message, "author": person, "committer": person, "comment_count": 0,
			"url":  api + "/git/commits/" + commit.sha,
			"tree": obj{"sha": commit.tree, "url": api + "/git/trees/" + commit.tree}}}
}

func nodeID(kind string, id int64) string {
	return kind[:1] + "_" + base64.RawURLEncoding.EncodeToString([]byte(kind+strconv.FormatInt(id, 10)))
}
