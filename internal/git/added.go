package git

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// maxAdded bounds the change whose lines Added reads, in bytes of its diff.
const maxAdded = 64 << 20

// Added calls see for each line that a change from one tree or commit to another adds, also in binary files, with
// the file's path and the line's number from 1 on; where paths are given, only in those. A change of more than 64 MiB
// is ErrTooLarge.
func (w *Workspace) Added(ctx context.Context, from, to string, see func(path string, n int, line string), paths ...string) error {
	out, err := w.run(ctx, command{args: changedLines, ids: []string{from, to}, paths: paths, limit: maxAdded})
	if err != nil {
		return fmt.Errorf("added lines: %w", err)
	}
	path := ""
	var n, olds, news int // the next added line's number, and what is left of the hunk
	for len(out) > 0 {
		var raw []byte
		raw, out, _ = bytes.Cut(out, []byte("\n"))
		line := string(raw)
		switch {
		case olds > 0 && strings.HasPrefix(line, "-"):
			olds--
		case news > 0 && strings.HasPrefix(line, "+"):
			see(path, n, line[1:])
			n, news = n+1, news-1
		case strings.HasPrefix(line, "+++ "):
			path = strings.TrimSuffix(line[len("+++ "):], "\t")
			if s, err := strconv.Unquote(path); err == nil {
				path = s
			}
			path = strings.TrimPrefix(path, "b/")
		case strings.HasPrefix(line, "@@ -"):
			f := strings.Fields(line) // @@ -3,2 +4 @@
			if len(f) < 4 {
				return fmt.Errorf("added lines: git wrote %.200q", line)
			}
			_, olds = span(f[1])
			n, news = span(f[2])
		}
	}
	return nil
}

// span reads a side of a hunk's header: "+4,2" and "-4,2" are the lines 4 and 5, "+4" one line.
func span(s string) (first, count int) {
	from, many, more := strings.Cut(s[1:], ",")
	first, _ = strconv.Atoi(from)
	if count = 1; more {
		count, _ = strconv.Atoi(many)
	}
	return first, count
}
