package policy

import "strings"

// span is a part of a text, from start up to and without end.
type span struct{ start, end int }

// htmlComments finds the HTML comments in Markdown whose lines end in line
// feeds, in order. An unclosed comment reaches to the end of the text.
//
// A comment in code is no comment; people write about HTML. But whoever wants
// to hide text would gain from any construct that looks like code here and not
// at GitHub. So code counts only where the two cannot differ: before the first
// raw HTML, in fences that start at the margin and in code spans that end on
// their own line. Everywhere else a comment in code is taken for a comment.
func htmlComments(text string) []span {
	var found []span
	code := codeFinder{sure: true, paired: true}
	for i := 0; i < len(text); {
		if n := code.at(text, i); n > 0 {
			i += n
			continue
		}
		if n := commentAt(text[i:]); n > 0 {
			found = append(found, span{i, i + n})
			i += n
			continue
		}
		i++
	}
	return found
}

// commentAt returns the length of the HTML comment at the start of text, 0 for
// none. <!--> and <!---> are whole comments.
func commentAt(text string) int {
	if !strings.HasPrefix(text, "<!--") {
		return 0
	}
	if end := strings.Index(text[2:], "-->"); end >= 0 {
		return 2 + end + len("-->")
	}
	return len(text)
}

// codeFinder tells code in Markdown while it can be certain.
type codeFinder struct {
	sure   bool // neither raw HTML nor a fence inside of something came by
	paired bool // no backticks of this paragraph wait for a partner further down
}

// at returns how many bytes at i are not to be searched for comments.
func (c *codeFinder) at(text string, i int) int {
	if !c.sure {
		return 0
	}
	if i == 0 || text[i-1] == '\n' {
		if line, _, _ := strings.Cut(text[i:], "\n"); strings.Trim(line, " \t") == "" {
			c.paired = true
		}
		if n := fenceAt(text[i:]); n > 0 {
			c.paired = true
			return n
		}
	}
	switch text[i] {
	case '\\':
		if i+1 < len(text) && (text[i+1] == '`' || text[i+1] == '\\') {
			return 2
		}
	case '`':
		// Behind anything but a space they may belong to an address.
		c.paired = c.paired && (i == 0 || is(text[i-1], isSpace))
		return c.backticks(text[i:])
	case ']': // what follows may be the target of a link
		c.paired = false
	case '$': // formulas have rules of their own
		c.sure = false
	case '~':
		c.sure = !strings.HasPrefix(text[i:], "~~~")
	case '<':
		c.sure = i+1 == len(text) || !is(text[i+1], isAlnum) && !strings.ContainsRune("/!?", rune(text[i+1]))
	}
	return 0
}

// backticks returns the length of the code span at the start of text, or of its
// backticks where it is none.
func (c *codeFinder) backticks(text string) int {
	n := ticks(text)
	if c.paired {
		inside := closingTicks(text[n:], n)
		// A bar may end the cell of a table, and with it the span.
		if inside >= 0 && !strings.Contains(text[n:n+inside], "|") {
			return n + inside + n
		}
	}
	c.paired = false
	c.sure = n < 3
	return n
}

// ticks counts the backticks at the start of text.
func ticks(text string) int {
	return len(text) - len(strings.TrimLeft(text, "`"))
}

// closingTicks returns the index of the first run of exactly n backticks on the
// line with which text starts, -1 for none.
func closingTicks(text string, n int) int {
	for i := 0; ; {
		next := strings.IndexAny(text[i:], "`\n")
		if next < 0 || text[i+next] == '\n' {
			return -1
		}
		i += next
		run := ticks(text[i:])
		if run == n {
			return i
		}
		i += run
	}
}

// fenceAt returns the length of the fenced code block that starts with text, 0
// for none. A block without an end reaches to the end of the text.
func fenceAt(text string) int {
	line, rest, _ := strings.Cut(text, "\n")
	open, ok := fenceMark(line)
	if !ok {
		return 0
	}
	for rest != "" {
		line, rest, _ = strings.Cut(rest, "\n")
		if closesFence(line, open, 3) {
			return len(text) - len(rest)
		}
	}
	return len(text)
}

// fenceMark returns the backticks or tildes with which line opens a code block
// at its very start.
func fenceMark(line string) (mark string, ok bool) {
	for _, c := range []string{"`", "~"} {
		info := strings.TrimLeft(line, c)
		if n := len(line) - len(info); n >= 3 {
			return line[:n], c == "~" || !strings.Contains(info, "`")
		}
	}
	return "", false
}

// closesFence reports whether line closes the code block that mark opened, with
// at most the given number of spaces before it.
func closesFence(line, mark string, spaces int) bool {
	text := strings.TrimLeft(line, " ")
	if len(line)-len(text) > spaces || !strings.HasPrefix(text, mark) {
		return false
	}
	return strings.Trim(strings.TrimLeft(text, mark[:1]), " \t") == ""
}
