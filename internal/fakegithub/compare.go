package fakegithub

import (
	"context"
	"strconv"
	"strings"
)

// comparison is what GitHub shows of base...head on a pull request.
type comparison struct {
	commits, files, additions, deletions int
	mergeable                            bool
}

// compare asks git what a pull request from head to base would bring.
func (r *repository) compare(ctx context.Context, base, head string) (comparison, error) {
	key := base + "..." + head
	var c comparison
	out, err := r.git.run(ctx, nil, "rev-list", "--count", base+".."+head)
	if err != nil {
		return c, err
	}
	if c.commits, err = strconv.Atoi(strings.TrimSpace(string(out))); err != nil {
		return c, err
	}
	if out, err = r.git.run(ctx, nil, "diff", "--numstat", key); err != nil {
		return c, err // the two have no history in common
	}
	for line := range strings.Lines(string(out)) {
		c.files++
		f := strings.Fields(line)
		if added, err := strconv.Atoi(f[0]); err == nil { // "-" for binary files
			c.additions += added
		}
		if deleted, err := strconv.Atoi(f[1]); err == nil {
			c.deletions += deleted
		}
	}
	_, err = r.git.run(ctx, nil, "merge-tree", "--write-tree", base, head)
	c.mergeable = err == nil
	return c, nil
}

// hunk is the first hunk of a file between two commits, for review comments.
func (r *repository) hunk(ctx context.Context, base, head, file string) (string, error) {
	out, err := r.git.run(ctx, nil, "diff", base+"..."+head, "--", file)
	if err != nil {
		return "", err
	}
	text := string(out)
	start := strings.Index(text, "\n@@")
	if start < 0 {
		return "", nil
	}
	text = text[start+1:]
	if next := strings.Index(text, "\n@@"); next > 0 {
		text = text[:next]
	}
	return strings.TrimSuffix(text, "\n"), nil
}
