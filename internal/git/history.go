package git

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// What a checkout gets of the history of its branch: all of it from a cache up to fullCache, measured at 0.3 s for 10 MB,
// as long as the last commits take. From a larger cache it is the last shortHistory commits, which show how people
// work here, and those down to the newest tag, from which builds derive a version, if those are up to deepHistory.
const (
	fullCache    = 64 << 20 // bytes
	shortHistory = 50
	deepHistory  = 1000
)

// history is what a checkout gets of the history of its branch.
type history struct {
	whole   bool
	commits []ancestor // the newest first; of a whole history only that one
	tags    []tag
}

// ancestor is a commit of a history.
type ancestor struct {
	id, tree string
	parents  []string
}

// tag is a reference below refs/tags/ to a commit, at once or by a tag object of this id.
type tag struct{ ref, id, commit string }

func (h history) has(commit string) bool {
	return slices.ContainsFunc(h.commits, func(a ancestor) bool { return a.id == commit })
}

// history decides what a checkout of a commit gets.
func (w *Workspace) history(ctx context.Context, commit string) (h history, err error) {
	bytes, err := w.cache.packed()
	if err != nil {
		return h, err
	}
	if h.whole = bytes <= w.cache.whole; h.whole {
		h.commits, err = w.ancestors(ctx, 1, commit)
		if err == nil {
			h.tags, err = w.cache.tags(ctx, "--merged="+commit)
		}
		return h, err
	}
	h.commits, err = w.ancestors(ctx, shortHistory, commit)
	if err != nil {
		return h, err
	}
	for _, kind := range []string{"--abbrev=0", "--tags"} { // annotated ones first, which are releases
		deep, err := w.sinceTag(ctx, kind, commit)
		if err != nil {
			return h, err
		}
		for _, c := range deep {
			if !h.has(c.id) {
				h.commits = append(h.commits, c)
			}
		}
	}
	all, err := w.cache.tags(ctx)
	h.tags = slices.DeleteFunc(all, func(t tag) bool { return !h.has(t.commit) })
	return h, err
}

// sinceTag are the commits from the newest tag of a kind on, which is an option of git describe; none if there are too many.
func (w *Workspace) sinceTag(ctx context.Context, kind, commit string) ([]ancestor, error) {
	newest, err := w.cache.newestTag(ctx, kind, commit)
	if newest == "" || err != nil {
		return nil, err
	}
	deep, err := w.ancestors(ctx, deepHistory+1, commit, "--not", newest+"^@")
	if len(deep) > deepHistory {
		return nil, err
	}
	return deep, err
}

// ancestors are a commit and up to most before it, without what more arguments of rev-list exclude.
func (w *Workspace) ancestors(ctx context.Context, most int, commit string, more ...string) (commits []ancestor, err error) {
	if err := checkIDs(commit); err != nil {
		return nil, err
	}
	args := []string{"rev-list", "--no-commit-header", "--format=%H %T %P", "--max-count", strconv.Itoa(most), commit}
	out, err := w.run(ctx, command{args: append(args, more...)})
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(out)) {
		ids := strings.Fields(line)
		if len(ids) < 2 {
			return nil, fmt.Errorf("history of %s: git wrote %.200q", commit, line)
		}
		commits = append(commits, ancestor{id: ids[0], tree: ids[1], parents: ids[2:]})
	}
	if len(commits) == 0 {
		return nil, fmt.Errorf("history of %s: git wrote nothing", commit)
	}
	return commits, nil
}

// packed is what the packs of the cache hold, in bytes. Hardly anything is outside of them.
func (c *Cache) packed() (sum int64, err error) {
	packs, err := filepath.Glob(filepath.Join(c.dir, "objects", "pack", "*.pack"))
	for _, pack := range packs {
		if info, err := os.Stat(pack); err == nil {
			sum += info.Size()
		}
	}
	return sum, err
}

// maxTags bounds the list of tags, in bytes: some 50,000.
const maxTags = 8 << 20

// tags are the tags of the cache that refer to commits, in the order of their names, and that more arguments of
// for-each-ref select. Of more than fit there are none.
func (c *Cache) tags(ctx context.Context, more ...string) (all []tag, err error) {
	if some, err := os.ReadDir(filepath.Join(c.dir, "refs", "tags")); err != nil || len(some) == 0 {
		return nil, nil // as in most repositories
	}
	args := append([]string{"for-each-ref", "--format=%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)"}, more...)
	out, err := c.run(ctx, command{args: append(args, "refs/tags"), limit: maxTags})
	if errors.Is(err, ErrTooLarge) {
		return nil, nil
	}
	for line := range strings.Lines(string(out)) {
		f := strings.Split(strings.TrimRight(line, " \n"), " ") // a tag's name may hold other blanks
		last := len(f) - 1
		if last < 2 || f[last] != "commit" {
			continue
		}
		if err := checkIDs(f[1], f[last-1]); err != nil {
			return nil, err
		}
		all = append(all, tag{ref: f[0], id: f[1], commit: f[last-1]})
	}
	return all, err
}

// newestTag is the commit of the tag by which git describes a commit, with an option; empty for none.
func (c *Cache) newestTag(ctx context.Context, option, commit string) (string, error) {
	name, err := line(c.run(ctx, command{args: []string{"describe", "--abbrev=0", "--candidates=1", option}, ids: []string{commit}}))
	if exitCode(err) == 128 { // there is none
		return "", ctx.Err()
	}
	if err != nil {
		return "", err
	}
	return line(c.run(ctx, command{args: []string{"rev-parse", "--verify", "--end-of-options", "refs/tags/" + name + "^{commit}"}}))
}

// pack copies the history of the branch into the agent's git directory, and no other object. Nothing is
// compressed again: that would take longer than the disk is worth.
func (w *Workspace) pack(ctx context.Context, spec CheckoutSpec, past history, dot string) error {
	var ends, wanted strings.Builder
	for _, c := range past.commits {
		if !past.whole && !past.hasAll(c.parents) {
			ends.WriteString(c.id + "\n")
			wanted.WriteString("--shallow " + c.id + "\n")
		}
	}
	wanted.WriteString(spec.Commit + "\n")
	if spec.Files != "" {
		wanted.WriteString(spec.Files + "^{tree}\n") // which the index names
	}
	for _, t := range past.tags {
		wanted.WriteString(t.id + "\n")
	}
	pack := filepath.Join(dot, "objects", "pack", "pack")
	args := []string{"pack-objects", "--revs", "--quiet", "--delta-base-offset", "--window=0", pack}
	if _, err := w.run(ctx, command{args: args, stdin: wanted.String()}); err != nil {
		return err
	}
	if ends.Len() == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dot, "shallow"), []byte(ends.String()), 0o600)
}

func (h history) hasAll(commits []string) bool {
	return !slices.ContainsFunc(commits, func(id string) bool { return !h.has(id) })
}

// writeRefs gives the agent's git directory the tags of its history, and the base that its branch began from.
func (w *Workspace) writeRefs(ctx context.Context, spec CheckoutSpec, past history, dot string) error {
	var refs strings.Builder
	for _, t := range past.tags {
		fmt.Fprintf(&refs, "%s %s\n", t.id, t.ref)
		if t.id != t.commit {
			fmt.Fprintf(&refs, "^%s\n", t.commit)
		}
	}
	if refs.Len() > 0 {
		if err := os.WriteFile(filepath.Join(dot, "packed-refs"), []byte(refs.String()), 0o600); err != nil {
			return err
		}
	}
	if spec.Base == "" || spec.From == "" {
		return nil
	}
	ref, err := fullRef("refs/remotes/origin/" + spec.Base)
	if err != nil {
		return err
	}
	has := past.has(spec.From)
	if past.whole {
		has, err = w.cache.IsAncestor(ctx, spec.From, spec.Commit)
	}
	if !has || err != nil {
		return err
	}
	return writeRef(dot, ref, spec.From)
}

// When tags are fetched. Our choice.
const (
	tagsEach = 10 * time.Minute // a version that is older than that is no release's
	tagsTime = 2 * time.Minute  // longer than the tags of most repositories take
	tagsRest = time.Hour        // after tags that took longer, or that the server did not send
)

// FetchTags brings the tags of the remote into the cache, where that was not done within the last minutes. They are not
// needed to work: an error is a reason to go on without the new ones.
func (c *Cache) FetchTags(ctx context.Context, r Remote) error {
	stamp := filepath.Join(c.dir, "pawl.tags") // its time is when the tags were fetched last
	if info, err := os.Stat(stamp); err == nil && time.Since(info.ModTime()) < tagsEach {
		return nil
	}
	held, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer held.Close()
	if err := os.WriteFile(stamp, nil, 0o600); err != nil {
		return err
	}
	args := []string{"fetch", "--quiet", "--prune", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--", r.URL, "+refs/tags/*:refs/tags/*"}
	bounded, cancel := context.WithTimeout(ctx, tagsTime)
	defer cancel()
	_, err = c.run(bounded, command{args: args, remote: &r, files: []*os.File{held}})
	if err != nil && ctx.Err() == nil {
		later := time.Now().Add(tagsRest)
		err = errors.Join(fmt.Errorf("fetch tags: %w", err), os.Chtimes(stamp, later, later))
	}
	return err
}
