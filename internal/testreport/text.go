package testreport

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pawlbot/pawl/internal/render"
)

var (
	duration = regexp.MustCompile(`(?: # time=[0-9.]+m?s| \((?:[0-9.]+ ?(?:ms|s|m))(?: [0-9.]+ ?(?:ms|s))?\)| [0-9.]+ms)(?: \{)?$`)
	// temporary matches paths that differ between runs.
	temporary = regexp.MustCompile(`(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s:'"\])]+`)
	address   = regexp.MustCompile(`0x[0-9a-fA-F]{6,16}`)
)

// stableName removes text that differs between runs.
func stableName(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\n")
	s = duration.ReplaceAllString(strings.TrimSpace(s), "")
	s = temporary.ReplaceAllString(s, "/tmp/…")
	s = address.ReplaceAllString(s, "0x…")
	return strings.TrimSpace(clip(s, maxFailureName))
}

func clip(s string, n int) string {
	s = strings.Trim(s, "\n")
	if len(s) <= n {
		return s
	}
	const mark = "…"
	return render.Head(s, n-len(mark)) + mark
}

type block struct {
	b     strings.Builder
	lines int
}

// maxBlockLines limits a block's lines. If a runner was killed inside a block, the next failure is still found.
const maxBlockLines = 400

func (b *block) add(line string) bool {
	if b.b.Len() < maxFailureText {
		b.b.WriteString(clip(line, maxFailureText))
		b.b.WriteByte('\n')
	}
	b.lines++
	return b.lines < maxBlockLines
}

func (b *block) text() string { return dedent(b.b.String()) }

// upTo returns a function that cuts a failure's text before the first line that matches.
func upTo(end string) func(*block) string {
	return func(b *block) string {
		lines := strings.Split(b.text(), "\n")
		if i := slices.IndexFunc(lines, form(end).MatchString); i >= 0 {
			lines = lines[:i]
		}
		return dedent(strings.Join(lines, "\n"))
	}
}

// blocks collects text by name.
type blocks struct {
	by    map[string]*block
	names []string // in order of appearance
}

// add appends a line to a name's text, for up to `most` names.
func (b *blocks) add(most int, name, line string) {
	if b.by[name] == nil {
		if len(b.by) >= most {
			return
		}
		if b.by == nil {
			b.by = map[string]*block{}
		}
		b.by[name], b.names = &block{}, append(b.names, name)
	}
	b.by[name].add(line)
}

func (b *blocks) take(name string) string {
	known := b.by[name]
	delete(b.by, name)
	if known == nil {
		return ""
	}
	return known.text()
}

func dedent(s string) string {
	lines := strings.Split(strings.Trim(s, "\n"), "\n")
	common := len(s)
	for _, l := range lines {
		if strings.TrimSpace(l) != "" {
			common = min(common, indent(l))
		}
	}
	for i, l := range lines {
		lines[i] = strings.TrimRight(l[min(common, indent(l)):], " \t")
	}
	return strings.Trim(strings.Join(lines, "\n"), "\n")
}

func indent(s string) int { return len(s) - len(strings.TrimLeft(s, " \t")) }

// number parses a count of at most a billion. Larger numbers in hostile output could overflow.
func number(s string) (int, bool) {
	n, err := strconv.Atoi(s)
	if err != nil {
		return 0, false
	}
	if n < 0 || n > 1_000_000_000 {
		return 0, false
	}
	return n, true
}
