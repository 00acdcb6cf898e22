package fakegithub

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

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
const repoConfig = `[http]
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

// branchGuard refuses pushes to the branches listed in the file "protected",
// one by one, as GitHub does and in its words. Git closes with "hook declined"
// where GitHub says "protected branch hook declined".
const branchGuard = `#!/bin/sh
[ -f protected ] && grep -qxF "${1#refs/heads/}" protected || exit 0
echo "error: GH006: Protected branch update failed for $1." >&2
echo >&2
case $3 in
*[!0]*) echo "- Changes must be made through a pull request." >&2 ;;
*) echo "- Cannot delete this protected branch." >&2 ;;
esac
exit 1
`

func (b bare) create(ctx context.Context, branch string) error {
	if _, err := b.run(ctx, nil, "init", "--quiet", "--bare", "--template=", "--initial-branch="+branch, b.dir); err != nil {
		return err
	}
	config, err := os.OpenFile(filepath.Join(b.dir, "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if _, err = config.WriteString(repoConfig); err != nil {
		return err
	}
	if err := config.Close(); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(b.dir, "hooks"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(b.dir, "hooks", "update"), []byte(branchGuard), 0o755); err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(b.dir, "hooks", "pre-receive"), []byte(workflowGuard), 0o755)
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

type treeEntry struct {
	kind string // file or dir
	name string
	sha  string
	size int
}

func (b bare) list(ctx context.Context, tree string) ([]treeEntry, error) {
	out, err := b.run(ctx, nil, "ls-tree", "-z", "--long", tree)
	if err != nil {
		return nil, err
	}
	var entries []treeEntry
	for _, line := range strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		meta, name, ok := strings.Cut(line, "\t")
		fields := strings.Fields(meta)
		if !ok || len(fields) != 4 {
			continue
		}
		e := treeEntry{kind: "file", name: name, sha: fields[2]}
		if fields[1] == "tree" {
			e.kind = "dir"
		} else if e.size, err = strconv.Atoi(fields[3]); err != nil {
			e.size = 0 // a submodule has no size
		}
		entries = append(entries, e)
	}
	return entries, nil
}

type commitInfo struct {
	sha, tree, name, email, message string
	parents                         []string
	at                              time.Time
}

func (b bare) commit(ctx context.Context, sha string) (commitInfo, error) {
	list, err := b.log(ctx, 1, sha)
	if err != nil {
		return commitInfo{}, err
	}
	if len(list) == 0 {
		return commitInfo{}, fmt.Errorf("no commit %s", sha)
	}
	return list[0], nil
}

// log lists commits newest first.
func (b bare) log(ctx context.Context, most int, revisions ...string) ([]commitInfo, error) {
	args := []string{"log", "-z", "--max-count=" + strconv.Itoa(most), "--format=%H%n%T%n%P%n%an%n%ae%n%ct%n%B"}
	out, err := b.run(ctx, nil, append(append(args, revisions...), "--")...)
	if err != nil {
		return nil, err
	}
	var list []commitInfo
	for _, record := range strings.Split(string(out), "\x00") {
		f := strings.SplitN(record, "\n", 7)
		if len(f) != 7 {
			continue
		}
		seconds, err := strconv.ParseInt(f[5], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("read the date of commit %s: %w", f[0], err)
		}
		list = append(list, commitInfo{sha: f[0], tree: f[1], parents: strings.Fields(f[2]), name: f[3], email: f[4],
			at: time.Unix(seconds, 0), message: strings.TrimRight(f[6], "\n")})
	}
	return list, nil
}
