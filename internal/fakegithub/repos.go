package fakegithub

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// getRepo answers with the long form, which no other answer has.
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
	kind, sha, err := c.repo.git.object(c.context(), ref)
	return sha, err == nil && kind == "commit"
}

func isHex(s string) bool {
	return len(s) >= 7 && len(s) <= 40 && strings.Trim(s, "0123456789abcdef") == ""
}

func nodeID(kind string, id int64) string {
	return kind[:1] + "_" + base64.RawURLEncoding.EncodeToString([]byte(kind+strconv.FormatInt(id, 10)))
}

// AddRepo makes a repository with one commit of these files on main, or without
// commits when files is empty, and installs the App on it.
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
		if _, err := w.pushes().writeCommit(ctx, r, holder, Commit{Branch: "main", Message: "Initial commit", Files: files}); err != nil {
			return err
		}
		var err error
		if r.branches, err = r.git.refs(ctx); err != nil {
			return err
		}
	}
	w.repos[strings.ToLower(full)] = r
	w.apps().install(r)
	return nil
}

func (w repositories) newRepository(owner *account, name string) *repository {
	id, now := w.newID(), w.now()
	return &repository{id: id, owner: owner, name: name, defaultBranch: "main", created: now, pushed: now,
		git: bare{dir: filepath.Join(w.dir, fmtID(id)+".git"), home: w.dir}, roles: map[string]string{}, branches: map[string]string{}}
}

// Publish lets everybody read a repository.
func (w repositories) Publish(repo string) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err == nil {
		r.public = true
	}
	return err
}

// RenameRepo gives a repository a new name; the former one redirects.
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

// RenameDefaultBranch gives the default branch another name. Git knows the former one no more; open pull requests
// into it are into the new one.
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

// DeleteRepo makes a repository disappear.
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

// bare is a bare repository on disk, driven by real git.
type bare struct {
	dir  string
	home string // an empty HOME, so that nobody's git config matters
}

// findBackend locates git-http-backend.
func findBackend(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "git", "--exec-path").Output()
	if err != nil {
		return "", fmt.Errorf("find git (install git): %w", err)
	}
	backend := filepath.Join(strings.TrimSpace(string(out)), "git-http-backend")
	if _, err := os.Stat(backend); err != nil {
		return "", fmt.Errorf("find git-http-backend (part of Debian's git package): %w", err)
	}
	return backend, nil
}

func (b bare) environ() []string {
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
}

func (b bare) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + b.dir}, args...)...)
	cmd.Env = b.environ()
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("git %s in %s: %w: %s", args[0], filepath.Base(b.dir), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// repoConfig allows pushes, hides the heads of pull requests from them and
// serves any commit by its id, as GitHub does.
const repoConfig = `[core]
	repositoryformatversion = 0
	bare = true
[http]
	receivepack = true
[receive]
	hideRefs = refs/pull
	autogc = false
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[gc]
	auto = 0
`

// workflowGuard refuses new commits that touch workflows when the pusher may
// not. GitHub words it the same.
const workflowGuard = `#!/bin/sh
[ "$FAKEGITHUB_WORKFLOWS" = deny ] || exit 0
while read -r old new ref; do
	case $new in *[!0]*) ;; *) continue ;; esac
	file=$(git log -m --format= --name-only "$new" --not --all -- .github/workflows | head -n 1)
	[ -z "$file" ] && continue
	echo "refusing to allow a GitHub App to create or update workflow \` + "`$file\\`" + ` without \` + "`workflows\\`" + ` permission" >&2
	exit 1
done
exit 0
`

// create makes the folders and files that git init would, without a process: a test
// may want thousands of repositories.
func (b bare) create(branch string) error {
	for _, dir := range []string{"objects/info", "objects/pack", "refs/heads", "refs/tags", "hooks"} {
		if err := os.MkdirAll(filepath.Join(b.dir, dir), 0o755); err != nil {
			return err
		}
	}
	return errors.Join(
		os.WriteFile(filepath.Join(b.dir, "HEAD"), []byte("ref: refs/heads/"+branch+"\n"), 0o644),
		os.WriteFile(filepath.Join(b.dir, "config"), []byte(repoConfig), 0o644),
		os.WriteFile(filepath.Join(b.dir, "hooks", "pre-receive"), []byte(workflowGuard), 0o755),
	)
}

// refs lists branches as name to commit.
func (b bare) refs(ctx context.Context) (map[string]string, error) {
	out, err := b.run(ctx, nil, "for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")
	if err != nil {
		return nil, err
	}
	refs := map[string]string{}
	for line := range strings.Lines(string(out)) {
		if sha, name, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			refs[name] = sha
		}
	}
	return refs, nil
}

// object tells the kind and the id of what a revision names.
func (b bare) object(ctx context.Context, rev string) (kind, sha string, err error) {
	out, err := b.run(ctx, []byte(rev+"\n"), "cat-file", "--batch-check=%(objecttype) %(objectname)")
	if err != nil {
		return "", "", err
	}
	kind, sha, _ = strings.Cut(strings.TrimSpace(string(out)), " ")
	switch kind {
	case "blob", "tree", "commit", "tag":
		return kind, sha, nil
	}
	return "", "", fmt.Errorf("no object %q in %s", rev, filepath.Base(b.dir))
}
