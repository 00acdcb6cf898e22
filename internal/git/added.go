package git

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Added calls see with each line that a change adds, and the line's path and 1-based number. Binary files count as
// text. If paths are given, it reads only those files.
func (w *Workspace) Added(ctx context.Context, from, to string, see func(path string, n int, line string), paths ...string) error {
	d := patchReader{see: see}
	err := w.eachUpTo(ctx, command{args: changedLines, ids: []string{from, to}, paths: paths}, '\n', d.line)
	if err != nil {
		return fmt.Errorf("added lines: %w", err)
	}
	return nil
}

// patchReader reads a patch without context.
type patchReader struct {
	see           func(path string, n int, line string)
	path          string
	n, olds, news int // the next added line's number, and the old and new lines left in the hunk
}

func (d *patchReader) line(line string) error {
	switch {
	case d.olds > 0 && strings.HasPrefix(line, "-"):
		d.olds--
	case d.news > 0 && strings.HasPrefix(line, "+"):
		d.see(d.path, d.n, line[1:])
		d.n, d.news = d.n+1, d.news-1
	case strings.HasPrefix(line, "+++ "):
		path := strings.TrimSuffix(line[len("+++ "):], "\t")
		if s, err := strconv.Unquote(path); err == nil {
			path = s
		}
		d.path = strings.TrimPrefix(path, "b/")
	case strings.HasPrefix(line, "@@ -"):
		f := strings.Fields(line) // @@ -3,2 +4 @@
		if len(f) < 4 {
			return fmt.Errorf("git wrote %.200q", line)
		}
		_, d.olds = span(f[1])
		d.n, d.news = span(f[2])
	}
	return nil
}

// span parses one side of a hunk header: "+4,2" means lines 4 and 5, "+4" means line 4.
func span(s string) (first, count int) {
	from, many, more := strings.Cut(s[1:], ",")
	first, _ = strconv.Atoi(from)
	if count = 1; more {
		count, _ = strconv.Atoi(many)
	}
	return first, count
}
