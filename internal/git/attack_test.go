package git

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Each attack configures the agent's .git, the work tree or a repository inside it. Plain git on the host would then run
// the program bait.
var attacks = map[string]func(t *testing.T, dir, bait string){
	"fsmonitor": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "core.fsmonitor", bait)
	},
	"hooks": func(t *testing.T, dir, bait string) {
		for _, hook := range []string{"pre-commit", "post-index-change", "reference-transaction", "pre-push", "post-checkout", "commit-msg"} {
			path := filepath.Join(dir, ".git", "hooks", hook)
			write(t, dir, map[string]string{".git/hooks/": ""})
			if err := os.Symlink(bait, path); err != nil {
				t.Fatal(err)
			}
		}
	},
	"hooks path": func(t *testing.T, dir, bait string) {
		write(t, dir, map[string]string{"hooks/": ""})
		if err := os.Symlink(bait, filepath.Join(dir, "hooks", "post-index-change")); err != nil {
			t.Fatal(err)
		}
		sh(t, dir, "config", "core.hooksPath", filepath.Join(dir, "hooks"))
	},
	"clean filter": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "filter.x.clean", bait)
		sh(t, dir, "config", "filter.x.smudge", bait)
		sh(t, dir, "config", "filter.x.required", "true")
		write(t, dir, map[string]string{".gitattributes": "* filter=x\n", "sub/.gitattributes": "* filter=x\n", ".git/info/attributes": "* filter=x\n"})
	},
	"textconv": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "diff.x.textconv", bait)
		write(t, dir, map[string]string{".gitattributes": "* diff=x\n"})
	},
	"external diff": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "diff.external", bait)
		sh(t, dir, "config", "diff.x.command", bait)
		write(t, dir, map[string]string{".gitattributes": "* diff=x\n"})
	},
	"ssh command": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "core.sshCommand", bait)
		sh(t, dir, "config", "url.ssh://evil/.insteadOf", "/")
	},
	"pager": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "core.pager", bait)
		sh(t, dir, "config", "core.editor", bait)
	},
	"alias": func(t *testing.T, dir, bait string) {
		for _, name := range []string{"ls-files", "write-tree", "update-index", "diff-tree"} {
			sh(t, dir, "config", "alias."+name, "!"+bait)
		}
	},
	"include": func(t *testing.T, dir, bait string) {
		write(t, dir, map[string]string{"evil.config": "[core]\n\tfsmonitor = " + bait + "\n"})
		sh(t, dir, "config", "include.path", filepath.Join(dir, "evil.config"))
		sh(t, dir, "config", "includeIf.gitdir:/.path", filepath.Join(dir, "evil.config"))
	},
	"credential helper": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "credential.helper", "!"+bait)
		sh(t, dir, "config", "core.askPass", bait)
	},
	"gpg program": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "gpg.program", bait)
		sh(t, dir, "config", "commit.gpgSign", "true")
	},
	"merge driver": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "merge.x.driver", bait)
		write(t, dir, map[string]string{".gitattributes": "* merge=x\n"})
	},
	"nested repository": func(t *testing.T, dir, bait string) {
		nested := filepath.Join(dir, "nested")
		sh(t, "/", "init", "-q", nested)
		sh(t, nested, "commit", "-q", "--allow-empty", "-m", "x")
		sh(t, nested, "config", "core.fsmonitor", bait)
		sh(t, nested, "config", "filter.x.clean", bait)
		write(t, nested, map[string]string{".gitattributes": "* filter=x\n", "f": "f"})
	},
	"replaced .git": func(t *testing.T, dir, bait string) {
		sh(t, dir, "config", "core.fsmonitor", bait)
		if err := os.Rename(filepath.Join(dir, ".git"), filepath.Join(dir, "moved")); err != nil {
			t.Fatal(err)
		}
		write(t, dir, map[string]string{".git": "gitdir: moved\n", "HEAD": "ref: refs/heads/work\n", "config": "[core]\n\tfsmonitor = " + bait + "\n",
			"objects/": "", "refs/": ""})
	},
}

func TestAgentsGitSettingsNeverRunOnTheHost(t *testing.T) {
	for name, attack := range attacks {
		t.Run(name, func(t *testing.T) {
			origin, first := repository(t, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
			c := open(t)
			r := Remote{URL: origin}
			if _, err := c.Fetch(t.Context(), r, "main"); err != nil {
				t.Fatal(err)
			}
			w, err := c.Checkout(t.Context(), CheckoutSpec{Commit: first, Dir: filepath.Join(t.TempDir(), "attempt")})
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			bait, sprung := trap(t)
			attack(t, w.Dir, bait)
			write(t, w.Dir, map[string]string{"a.txt": "changed\n", "sub/new.txt": "new\n"})
			if err := os.RemoveAll(sprung); err != nil { // the setup may have run bait
				t.Fatal(err)
			}

			s, _ := snapshot(t, w)
			if _, err := w.Diff(t.Context(), w.StartTree, s.Tree, 1<<20); err != nil {
				t.Error(err)
			}
			tree, _, err := w.Without(t.Context(), s.Tree, w.StartTree, func(p string) bool { return strings.HasPrefix(p, "sub/") })
			if err != nil {
				t.Error(err)
			}
			sha, err := w.Commit(t.Context(), spec(tree, first))
			if err != nil {
				t.Fatal(err)
			}
			if _, _, err := c.Merge(t.Context(), sha, first); err != nil {
				t.Error(err)
			}
			if err := c.Push(t.Context(), r, sha, "topic", ""); err != nil {
				t.Error(err)
			}
			if got := sh(t, origin, "show", "topic:a.txt"); got != "changed" {
				t.Errorf("the pushed file contains %q", got)
			}
			// The next attempt starts from this one's work tree.
			next, err := c.Checkout(t.Context(), CheckoutSpec{Commit: sha, Dir: filepath.Join(t.TempDir(), "next")})
			if err != nil {
				t.Fatal(err)
			}
			snapshot(t, next)
			if err := next.Close(); err != nil {
				t.Error(err)
			}
			if by, err := os.ReadFile(sprung); err == nil {
				t.Errorf("git ran the agent's program:\n%s", by)
			}
		})
	}
}

// trap returns a program, bait, that creates the file sprung when it runs.
func trap(t *testing.T) (bait, sprung string) {
	dir := t.TempDir()
	bait, sprung = filepath.Join(dir, "bait"), filepath.Join(dir, "sprung")
	script := fmt.Sprintf("#!/bin/sh\necho \"$0 $*\" >> %s\ncat 2>/dev/null\n", sprung)
	if err := os.WriteFile(bait, []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	return bait, sprung
}

// Plain git in the agent's .git runs the bait, so the attacks are real.
func TestAttacksFireWithoutTheDefence(t *testing.T) {
	for _, name := range []string{"fsmonitor", "clean filter", "include", "hooks", "nested repository"} {
		w := checkout(t, map[string]string{"a.txt": "a\n", "sub/b.txt": "b\n"})
		bait, sprung := trap(t)
		attacks[name](t, w.Dir, bait)
		write(t, w.Dir, map[string]string{"a.txt": "changed\n"})
		if err := os.RemoveAll(sprung); err != nil {
			t.Fatal(err)
		}
		dir := w.Dir
		if name == "nested repository" {
			dir = filepath.Join(w.Dir, "nested")
		}
		sh(t, dir, "add", "-A")
		if _, err := os.Stat(sprung); err != nil {
			t.Errorf("%s: the attack fails even against plain git", name)
		}
	}
}
