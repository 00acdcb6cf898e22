package git

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// From a cache of at most fullCache, a checkout gets the whole history of its branch: copying 10 MB took 0.3 s, as long
// as copying the last commits. From a larger cache, it gets the last shortHistory commits. It also gets the commits
// since the newest tag, because builds derive versions from tags. It gets the commits since the base, too, because
// tools compare with it. Either part is left out if it has more than deepHistory commits.
const (
	fullCache    = 64 << 20 // bytes
	shortHistory = 50
	deepHistory  = 1000
)

// history is the part of a branch's history that a checkout gets.
type history struct {
	whole   bool
	commits []ancestor // the first is the newest; a whole history lists only that one
	tags    []tag
}

// ancestor is a commit of a history.
type ancestor struct {
	id, tree string
	parents  []string
}

// tag is a reference below refs/tags/. Its id names the commit, or an annotated tag's object.
type tag struct{ ref, id, commit string }

func (t tag) annotated() bool { return t.id != t.commit }

func (h history) has(commit string) bool {
	return slices.ContainsFunc(h.commits, func(a ancestor) bool { return a.id == commit })
}

// history returns the history that a checkout of a commit gets. from is the commit where the branch began, or empty.
func (w *Workspace) history(ctx context.Context, commit, from string) (h history, err error) {
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
	recent, err := w.ancestors(ctx, deepHistory+1, commit)
	if err != nil {
		return h, err
	}
	h.commits = slices.Clone(recent[:min(shortHistory, len(recent))])
	all, err := w.cache.tags(ctx)
	if err != nil {
		return h, err
	}
	annotated := slices.DeleteFunc(slices.Clone(all), func(t tag) bool { return !t.annotated() })
	base := []tag{{commit: from}}
	for _, some := range [][]tag{annotated, all, base} { // git describe uses annotated tags, or all tags with --tags
		deep, err := w.sinceTag(ctx, commit, recent, some)
		if err != nil {
			return h, err
		}
		for _, c := range deep {
			if !h.has(c.id) {
				h.commits = append(h.commits, c)
			}
		}
	}
	h.tags = slices.DeleteFunc(all, func(t tag) bool { return !h.has(t.commit) })
	return h, nil
}

// sinceTag returns the commits since the newest of the tags. It returns none if no recent commit has a tag, or if there
// are more than deepHistory.
func (w *Workspace) sinceTag(ctx context.Context, commit string, recent []ancestor, tags []tag) ([]ancestor, error) {
	tagged := make(map[string]bool, len(tags))
	for _, t := range tags {
		tagged[t.commit] = true
	}
	newest := slices.IndexFunc(recent, func(a ancestor) bool { return tagged[a.id] })
	if newest < 0 {
		return nil, nil
	}
	deep, err := w.ancestors(ctx, deepHistory+1, commit, "--not", recent[newest].id+"^@")
	if err != nil || len(deep) > deepHistory {
		return nil, err
	}
	// The branch may have merged a commit older than the tag. Without the history between the two, git describe would
	// count that commit as newer.
	place := make(map[string]int, len(recent))
	for i, a := range recent {
		place[a.id] = i
	}
	last := newest
	for _, c := range deep {
		if len(c.parents) < 2 {
			continue
		}
		for _, p := range c.parents {
			last = max(last, place[p])
		}
	}
	return slices.Concat(recent[:last+1], deep), nil
}

// ancestors returns a commit with its ancestors, up to most commits. Additional rev-list arguments may exclude some.
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

// packed returns the size of the cache's packs in bytes. Almost all objects are in packs.
func (c *Cache) packed() (sum int64, err error) {
	packs, err := filepath.Glob(filepath.Join(c.dir, "objects", "pack", "*.pack"))
	for _, pack := range packs {
		if info, err := os.Stat(pack); err == nil {
			sum += info.Size()
		}
	}
	return sum, err
}

// maxTags limits a repository's tags: with more, Pawl fetches none. The largest public repositories have about 20,000.
const maxTags = 50_000

// hasTags reports whether the cache may have tags. It starts no process, since most caches have no tags.
func (c *Cache) hasTags() bool {
	some, err := os.ReadDir(filepath.Join(c.dir, "refs", "tags"))
	return err == nil && len(some) > 0
}

// tags returns the cache's tags of commits, sorted by name. Additional for-each-ref arguments may select some.
func (c *Cache) tags(ctx context.Context, more ...string) (all []tag, err error) {
	if !c.hasTags() {
		return nil, nil
	}
	args := append([]string{"for-each-ref", "--format=%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)"}, more...)
	err = c.eachUpTo(ctx, command{args: append(args, "refs/tags")}, '\n', func(line string) error {
		f := strings.Split(strings.TrimRight(line, " "), " ") // a tag's name may contain other white space
		last := len(f) - 1
		if last < 2 || f[last] != "commit" {
			return nil
		}
		all = append(all, tag{ref: f[0], id: f[1], commit: f[last-1]})
		return checkIDs(f[1], f[last-1])
	})
	return all, err
}

// pack copies only the branch's history into the agent's git directory. It does not search for new deltas, because the
// saved disk space is not worth the time.
func (w *Workspace) pack(ctx context.Context, spec CheckoutSpec, past history, dot string) error {
	var wanted strings.Builder
	ends := past.ends()
	for _, id := range ends {
		wanted.WriteString("--shallow " + id + "\n")
	}
	wanted.WriteString(spec.Commit + "\n")
	if spec.Files != "" {
		wanted.WriteString(spec.Files + "^{tree}\n") // the index refers to its objects
	}
	for _, t := range past.tags {
		wanted.WriteString(t.id + "\n")
	}
	pack := filepath.Join(dot, "objects", "pack", "pack")
	args := []string{"pack-objects", "--revs", "--quiet", "--delta-base-offset", "--window=0", pack}
	if _, err := w.run(ctx, command{args: args, stdin: wanted.String()}); err != nil {
		return err
	}
	if len(ends) == 0 {
		return nil
	}
	return os.WriteFile(filepath.Join(dot, "shallow"), []byte(strings.Join(ends, "\n")+"\n"), 0o600)
}

// ends returns the commits where a partial history stops. git treats them as commits without parents. A merge with a
// packed parent is not an end, because git would drop that parent too. Instead, the merge's missing parents are ends,
// and are packed with their files.
func (h history) ends() (ends []string) {
	if h.whole {
		return nil
	}
	for _, c := range h.commits {
		missing := slices.DeleteFunc(slices.Clone(c.parents), h.has)
		if len(missing) > 0 && len(missing) == len(c.parents) {
			missing = []string{c.id}
		}
		ends = append(ends, missing...)
	}
	slices.Sort(ends)
	return slices.Compact(ends)
}

// writeRefs writes the tags of the history, and origin/BASE at the commit where the branch began.
func (w *Workspace) writeRefs(ctx context.Context, spec CheckoutSpec, past history, dot string) error {
	var refs strings.Builder
	for _, t := range past.tags {
		fmt.Fprintf(&refs, "%s %s\n", t.id, t.ref)
		if t.annotated() {
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

// Limits for fetching tags. Our choice.
const (
	tagsEach   = 10 * time.Minute // builds do not need newer tags
	tagsTime   = 2 * time.Minute
	tagsRetry  = time.Hour        // after an error
	tagsAtOnce = 1000             // git posts up to six names per tag; above 1 MiB it sends chunks, which some servers refuse
	tagsLocked = 20 * time.Second // longest time to hold the lock, for tagsAtOnce tags; 1,000 of 30,000 took 5 s
)

// FetchTags fetches the remote's tags of commits in the cache, at most once every tagsEach. It fetches no other
// commits. Callers may ignore the error, since attempts can do without new tags.
func (c *Cache) FetchTags(ctx context.Context, r Remote) error {
	stamp := filepath.Join(c.dir, "pawl.tags") // its modification time is the last fetch's, plus tagsRetry after an error
	if info, err := os.Stat(stamp); err == nil {
		wait := tagsEach - time.Since(info.ModTime())
		if wait > 0 && wait <= tagsEach+tagsRetry { // otherwise the clock was set back
			return nil
		}
	}
	if err := os.WriteFile(stamp, nil, 0o600); err != nil {
		return err
	}
	bounded, cancel := context.WithTimeout(ctx, tagsTime)
	defer cancel()
	remote, err := c.remoteTags(bounded, r)
	some := len(remote) > 0 || c.hasTags()
	if err == nil && some {
		err = c.takeTags(bounded, r, remote)
	}
	if err != nil && ctx.Err() == nil {
		later := time.Now().Add(tagsRetry)
		err = errors.Join(fmt.Errorf("fetch tags: %w", err), os.Chtimes(stamp, later, later))
	}
	return err
}

// remoteTags returns the remote's tags of commits in the cache, by reference.
func (c *Cache) remoteTags(ctx context.Context, r Remote) (map[string]tag, error) {
	all := map[string]tag{}
	ask := command{args: []string{"ls-remote", "--tags", "--", r.URL}, remote: &r}
	err := c.eachUpTo(ctx, ask, '\n', func(line string) error {
		id, name, _ := strings.Cut(line, "\t")
		ref, peeled := strings.CutSuffix(name, "^{}")
		t := tag{ref: ref, id: id, commit: id}
		if peeled {
			t.id = all[ref].id
		}
		if !strings.HasPrefix(ref, "refs/tags/") || !validRef(ref) {
			return nil
		}
		if all[ref] = t; len(all) > maxTags {
			return tooLarge("more than %d tags", maxTags)
		}
		return checkIDs(t.id, t.commit)
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	var ids strings.Builder
	for _, t := range all {
		ids.WriteString(t.commit + "\n")
	}
	local := map[string]bool{}
	check := command{args: []string{"cat-file", "--batch-check"}, stdin: ids.String()}
	err = c.eachUpTo(ctx, check, '\n', func(line string) error {
		if f := strings.Fields(line); len(f) == 3 && f[1] == "commit" { // id, type, size
			local[f[0]] = true
		}
		return nil
	})
	maps.DeleteFunc(all, func(_ string, t tag) bool { return !local[t.commit] })
	return all, err
}

// takeTags makes the cache's tags equal the remote's.
func (c *Cache) takeTags(ctx context.Context, r Remote, wanted map[string]tag) error {
	old := map[string]string{} // reference → id
	list := command{args: []string{"for-each-ref", "--format=%(objectname) %(refname)", "refs/tags"}}
	err := c.eachUpTo(ctx, list, '\n', func(line string) error {
		id, ref, _ := strings.Cut(line, " ")
		old[ref] = id
		return nil
	})
	if err != nil {
		return err
	}
	var remove, point, fetch []string
	for ref := range old {
		if _, ok := wanted[ref]; !ok {
			remove = append(remove, "delete "+ref)
		}
	}
	for ref, t := range wanted {
		switch {
		case old[ref] == t.id:
		case t.annotated():
			fetch = append(fetch, "+"+ref+":"+ref)
		default:
			point = append(point, "update "+ref+" "+t.id)
		}
	}
	local := []string{"update-ref", "--stdin"}
	remote := []string{"fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance", "--stdin", "--", r.URL}
	for _, step := range []struct {
		args, lines []string
	}{
		{local, remove}, // first, because a new tag may use a removed tag's name as its folder
		{local, point},
		{remote, fetch},
	} {
		for lines := range slices.Chunk(step.lines, tagsAtOnce) {
			if err := c.locked(ctx, command{args: step.args, stdin: strings.Join(lines, "\n") + "\n", remote: &r}); err != nil {
				return err
			}
		}
	}
	return nil
}

// locked runs git with the cache's lock, for at most tagsLocked.
func (c *Cache) locked(ctx context.Context, do command) error {
	ctx, cancel := context.WithTimeout(ctx, tagsLocked)
	defer cancel()
	lock, err := c.lock(ctx)
	if err != nil {
		return err
	}
	defer lock.Close()
	do.files = []*os.File{lock}
	_, err = c.run(ctx, do)
	return err
}
