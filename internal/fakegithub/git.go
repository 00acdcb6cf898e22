package fakegithub

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// bare is a bare repository on disk, driven by git. Starting git is slow, so one process reads objects, and refs are
// read directly.
type bare struct {
	dir     string
	home    string        // has no git config, so that no user's config applies
	started *atomic.Int64 // number of git processes, without their children

	mu      sync.Mutex // guards the fields below
	catFile *exec.Cmd  // git cat-file --batch, started on first use
	ask     io.WriteCloser
	answers *bufio.Reader
}

// command prepares a git command. All git processes of this package start here.
func (b *bare) command(ctx context.Context, args ...string) *exec.Cmd {
	b.started.Add(1)
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir=" + b.dir}, args...)...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + b.home, "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "LC_ALL=C"}
	return cmd
}

func (b *bare) run(ctx context.Context, stdin []byte, args ...string) ([]byte, error) {
	cmd := b.command(ctx, args...)
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("git %s in %s: %w: %s", args[0], filepath.Base(b.dir), err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

// repoConfig hides pull requests' heads from pushes and serves any commit by id, like GitHub. Pushes need not survive
// a crash, so git need not sync files.
const repoConfig = `[core]
	repositoryformatversion = 0
	bare = true
	fsync = none
	alternateRefsCommand = true
[fastimport]
	unpackLimit = 0
[receive]
	hideRefs = refs/pull
	autogc = false
[uploadpack]
	allowFilter = true
	allowAnySHA1InWant = true
[gc]
	auto = 0
`

// workflowGuard refuses commits that change workflow files without permission, with GitHub's message.
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

// create makes git init's folders and files without a process: a test may need thousands of repositories.
func (b *bare) create(branch string) error {
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

// refs maps full ref names to object ids. No ref is packed.
func (b *bare) refs() (map[string]string, error) {
	refs, root := map[string]string{}, os.DirFS(b.dir)
	err := fs.WalkDir(root, "refs", func(name string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // a push has just deleted it
		}
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".lock") {
			return err
		}
		sha, err := fs.ReadFile(root, name)
		if err == nil {
			refs[name] = strings.TrimSpace(string(sha))
		} else if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	})
	return refs, err
}

func (b *bare) branches() (map[string]string, error) {
	refs, err := b.refs()
	branches := map[string]string{}
	for ref, sha := range refs {
		if name, is := strings.CutPrefix(ref, "refs/heads/"); is {
			branches[name] = sha
		}
	}
	return branches, err
}

// setRef writes a ref, or deletes it if sha is empty.
func (b *bare) setRef(ref, sha string) error {
	file := filepath.Join(b.dir, ref)
	if sha == "" {
		return os.Remove(file)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(file+".lock", []byte(sha+"\n"), 0o644); err != nil {
		return err
	}
	return os.Rename(file+".lock", file)
}

type object struct {
	kind, sha string
	content   []byte
}

// object reads a revision's object.
func (b *bare) object(rev string) (object, error) {
	unknown := fmt.Errorf("no object %q in %s", rev, filepath.Base(b.dir))
	if strings.Contains(rev, "\n") {
		return object{}, unknown
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.startCatFile(); err != nil {
		return object{}, err
	}
	if _, err := fmt.Fprintln(b.ask, rev); err != nil {
		return object{}, err
	}
	line, err := b.answers.ReadString('\n')
	if err != nil {
		return object{}, err
	}
	fields := append(strings.Fields(line), "", "", "")
	size, err := strconv.Atoi(fields[2])
	if err != nil { // "<rev> missing" or "<rev> ambiguous"
		return object{}, unknown
	}
	content := make([]byte, size+len("\n"))
	_, err = io.ReadFull(b.answers, content)
	return object{kind: fields[1], sha: fields[0], content: content[:size]}, err
}

func (b *bare) startCatFile() error {
	if b.catFile != nil {
		return nil
	}
	cmd := b.command(context.Background(), "cat-file", "--batch")
	ask, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start git cat-file in %s: %w", filepath.Base(b.dir), err)
	}
	b.catFile, b.ask, b.answers = cmd, ask, bufio.NewReader(answers)
	return nil
}

func (b *bare) close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.catFile == nil {
		return nil
	}
	err := errors.Join(b.ask.Close(), b.catFile.Wait())
	b.catFile = nil
	return err
}

type gitCommit struct {
	sha, tree           string
	parents             []string
	name, email         string // the author's
	authored, committed string // RFC 3339
	subject, message    string
	changes             string // lines like "A\tname"; empty for a merge
}

// files lists the changed files whose status letter is in ways.
func (c gitCommit) files(ways string) []string {
	names := []string{}
	for line := range strings.Lines(c.changes) {
		way, name, _ := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		if way != "" && strings.Contains(ways, way) {
			names = append(names, name)
		}
	}
	return names
}

// log lists commits by git log's arguments.
func (b *bare) log(ctx context.Context, args ...string) ([]gitCommit, error) {
	const format = "--format=%x00%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cI%x00%s%x00%B%x00"
	args = append([]string{"log", "--no-renames", "--name-status", format}, args...)
	out, err := b.run(ctx, nil, append(args, "--")...)
	if err != nil {
		return nil, err
	}
	var list []gitCommit
	f := strings.Split(string(out), "\x00")
	for ; len(f) > 10; f = f[10:] {
		list = append(list, gitCommit{sha: f[1], tree: f[2], parents: strings.Fields(f[3]), name: f[4], email: f[5], authored: f[6],
			committed: f[7], subject: f[8], message: strings.TrimRight(f[9], "\n"), changes: f[10]})
	}
	return list, nil
}

// distance counts the commits only in base and only in head.
func (b *bare) distance(ctx context.Context, base, head string) (behind, ahead int, err error) {
	out, err := b.run(ctx, nil, "rev-list", "--left-right", "--count", base+"..."+head)
	if err != nil {
		return 0, 0, err
	}
	_, err = fmt.Sscan(string(out), &behind, &ahead)
	return behind, ahead, err
}
