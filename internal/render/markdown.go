package render

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy"
)

// Code returns hostile text as inline code, at most 160 characters. A pipe would split a table's cell, so it becomes a
// broken bar.
func Code(s string) string { return code(strings.ReplaceAll(Line(s, 160), "|", "¦")) }

// code returns a clean line as inline code.
func code(s string) string {
	if s == "" {
		return "` `"
	}
	ticks := ticks(s, 1)
	if strings.HasPrefix(s, "`") || strings.HasSuffix(s, "`") {
		s = " " + s + " "
	}
	return ticks + s + ticks
}

// Fence returns hostile text as a fenced block of about max bytes. The fence is longer than any in the text.
func Fence(s string, max int) string {
	s = Excerpt(s, max)
	ticks := ticks(s, 3)
	return ticks + "text\n" + s + "\n" + ticks
}

// ticks returns at least `least` backticks, and more than any run of backticks in s.
func ticks(s string, least int) string {
	for run := range strings.FieldsFuncSeq(s, func(r rune) bool { return r != '`' }) {
		least = max(least, len(run)+1)
	}
	return strings.Repeat("`", least)
}

// plain matches a word whose characters have no meaning inside a line of Markdown. telling matches what GitHub would
// still turn into a link or a picture: addresses, references like GH-12, hashes and emoji names. opening matches the
// start of a list item.
var (
	plain   = regexp.MustCompile(`^[\p{L}\p{M}\p{N}×–—…%'"’“”.,;:!?()+-]+$`)
	telling = regexp.MustCompile(`(?i)www\.|[a-z]-\d|\b[0-9a-f]{7,40}\b|:[a-z0-9+-]+:|mailto:|xmpp:`)
	opening = regexp.MustCompile(`^(?:[+-]|[0-9]+[.)])`)
)

// Prose returns a Markdown sentence that may mix Pawl's words with outside text, at most 400 characters. Inline code
// stays, and words that GitHub could interpret become inline code.
func Prose(s string) string {
	w := wording{first: true, code: Code}
	return w.of(Line(s, 400))
}

// wording renders the words of a line.
type wording struct {
	first    bool // the words begin a line
	emphasis bool // asterisks around a word stay
	code     func(string) string

	out, risky []string
}

var (
	// wordForm matches a word, including inline code with spaces.
	wordForm = regexp.MustCompile("(?:`+[^`]+`+|\\S)+")
	// codeForm matches inline code and the punctuation around it.
	codeForm = regexp.MustCompile("^([(\"'“]*)`+([^`]*[^`\\s][^`]*)`+([.,;:!?)\"'”]*)$")
)

func (w *wording) of(line string) string {
	for i, word := range wordForm.FindAllString(line, -1) {
		w.add(word, w.first && i == 0)
	}
	w.flush("")
	return strings.Join(w.out, " ")
}

func (w *wording) add(word string, first bool) {
	core := strings.TrimRight(word, ".,;:!?)")
	after := word[len(core):]
	m := codeForm.FindStringSubmatch(word)
	switch {
	case followsPawl(w.risky) && policy.IsCommand(core):
		w.risky = append(w.risky, core)
	case m != nil:
		w.flush("")
		w.out = append(w.out, m[1]+w.code(strings.TrimSpace(m[2]))+m[3])
		return
	case harmless(w.inner(word), first):
		w.flush("")
		w.out = append(w.out, word)
		return
	case core == "":
		w.risky = append(w.risky, word)
		return
	default:
		w.risky = append(w.risky, core)
	}
	if after != "" {
		w.flush(after)
	}
}

// flush writes the collected risky words as inline code, followed by their punctuation.
func (w *wording) flush(after string) {
	if len(w.risky) > 0 {
		w.out = append(w.out, w.code(strings.Join(w.risky, " "))+after)
		w.risky = nil
	}
}

// emphasised matches a word with asterisks at its edges that are emphasis (CommonMark 0.31, section 6.2).
var emphasised = regexp.MustCompile(`^(?:\*{1,3}([\p{L}\p{N}][^*]*)|([^*]+))\*{0,3}([.,;:!?)]*)$`)

// inner returns a word without emphasis asterisks around it, if emphasis is allowed.
func (w *wording) inner(word string) string {
	m := emphasised.FindStringSubmatch(word)
	if m == nil || !w.emphasis {
		return word
	}
	return m[1] + m[2] + m[3]
}

// followsPawl reports whether the next word may be a Pawl command.
func followsPawl(words []string) bool {
	return len(words) > 0 && words[len(words)-1] == "/pawl"
}

// harmless reports whether GitHub shows a word as it is, at the start of a line or elsewhere.
func harmless(word string, first bool) bool {
	if !plain.MatchString(word) || telling.MatchString(word) {
		return false
	}
	if first && opening.MatchString(word) {
		return false
	}
	return word == "%" || strings.ContainsFunc(word, func(r rune) bool { return alphanumeric(r) || r > 127 })
}

func alphanumeric(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }

// Label returns a name for titles, at most 40 characters. Characters that Pawl's names do not need become underscores.
func Label[S ~string](s S) string {
	return strings.Map(func(r rune) rune {
		if alphanumeric(r) || strings.ContainsRune(" ._-", r) {
			return r
		}
		return '_'
	}, Line(string(s), 40))
}

// bare matches names that need no code around them.
var bare = regexp.MustCompile(`^[a-z][a-z0-9./-]*$`)

// Name returns a backend's or repository's name for a Markdown sentence.
func Name(s string) string {
	s = Line(s, 100)
	if !bare.MatchString(s) || telling.MatchString(s) || strings.Contains(s, "//") {
		return Code(s)
	}
	return s
}

// address matches the web addresses that Pawl links to.
var address = regexp.MustCompile(`^(?i:https?)://[A-Za-z0-9.:-]+(?:/[A-Za-z0-9._~%/#?=&+-]*)?$`)

// URL returns the address if Pawl may link to it, otherwise empty.
func URL(s string) string {
	if len(s) > 300 || !address.MatchString(s) {
		return ""
	}
	return s
}

// Link returns a Markdown link. text must be Pawl's own. The result is empty if URL refuses the address.
func Link(text, url string) string {
	if URL(url) == "" {
		return ""
	}
	return "[" + text + "](" + url + ")"
}
