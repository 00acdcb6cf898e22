package fakegithub

import (
	"context"
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
)

// getRepo returns the long form. Other routes return a short one.
func (w repositories) getRepo(c *call) *reply {
	body := w.renderRepo(c.repo)
	body["network_count"], body["subscribers_count"], body["custom_properties"] = 0, 0, obj{}
	return ok(body)
}

// resolve turns a branch, "heads/x", "refs/heads/x" or a commit into a commit.
func (c *call) resolve(ref string) (string, bool) {
	name := strings.TrimPrefix(strings.TrimPrefix(ref, "refs/"), "heads/")
	if sha := c.repo.branches[name]; sha != "" {
		return sha, true
	}
	if !isHex(ref) {
		return "", false
	}
	o, err := c.repo.git.object(ref)
	return o.sha, err == nil && o.kind == "commit"
}

func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 40 && strings.Trim(s, "0123456789abcdef") == ""
}

func nodeID(kind string, id int64) string {
	return kind[:1] + "_" + base64.RawURLEncoding.EncodeToString([]byte(kind+strconv.FormatInt(id, 10)))
}

// AddRepo creates a repository with one commit of files on main, or no commit if files is empty, and installs the
// App.
func (w repositories) AddRepo(ctx context.Context, full string, files map[string]string) error {
	defer w.act()()
	owner, name, ok := strings.Cut(full, "/")
	if !ok || owner == "" || name == "" || strings.Contains(name, "/") {
		return fmt.Errorf("repository name %q: use owner/name", full)
	}
	if w.repos[strings.ToLower(full)] != nil {
		return fmt.Errorf("the repository %q exists already", full)
	}
	holder := w.accounts[strings.ToLower(owner)]
	if holder == nil {
		holder = &account{id: w.newID(), login: owner, kind: "Organization"}
		w.accounts[strings.ToLower(owner)] = holder
	}
	r := w.newRepository(holder, name)
	if err := r.git.create(r.defaultBranch); err != nil {
		return err
	}
	if len(files) > 0 {
		sha, err := w.pushes().writeCommit(ctx, r, holder, Commit{Branch: "main", Message: "Initial commit", Files: files})
		if err != nil {
			return err
		}
		r.branches["main"] = sha
	}
	w.repos[strings.ToLower(full)] = r
	w.apps().install(r)
	return nil
}

func (w repositories) newRepository(owner *account, name string) *repository {
	id, now := w.newID(), w.now()
	return &repository{id: id, owner: owner, name: name, defaultBranch: "main", created: now, pushed: now,
		git: &bare{dir: filepath.Join(w.dir, fmtID(id)+".git"), home: w.dir, started: &w.gits}, roles: map[string]string{},
		branches: map[string]string{}, protected: map[string]*protection{}, rulesets: map[string][]string{}, rules: map[string][]string{}, statuses: map[string]map[string]string{}, comparisons: map[string]comparison{}}
}

// Publish makes a repository public.
func (w repositories) Publish(repo string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.public = true
	}
	return err
}

// RenameRepo renames a repository; the former name redirects.
func (w repositories) RenameRepo(repo, name string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	from := r.name
	r.name = name
	w.repos[strings.ToLower(r.fullName())] = r
	w.emit("repository", r, r.owner, obj{"action": "renamed", "changes": obj{"repository": obj{"name": obj{"from": from}}}})
	return nil
}

// RenameDefaultBranch renames the default branch and the base of its open pull requests.
func (w repositories) RenameDefaultBranch(ctx context.Context, repo, name string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	from := r.defaultBranch
	if _, err := r.git.run(ctx, nil, "branch", "-m", from, name); err != nil {
		return err
	}
	r.branches[name] = r.branches[from]
	delete(r.branches, from)
	r.defaultBranch = name
	for _, t := range r.threads {
		if t.pull != nil && t.state == "open" && t.pull.baseRef == from {
			t.pull.baseRef = name
		}
	}
	w.emit("repository", r, r.owner, obj{"action": "edited", "changes": obj{"default_branch": obj{"from": from}}})
	return nil
}

func (w repositories) DeleteRepo(repo string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	w.emit("repository", r, r.owner, obj{"action": "deleted"})
	r.deleted = true
	return nil
}
