package feedback

import (
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/pawlbot/pawl/policy"
)

type Command struct {
	// Name is in policy.Commands, or policy.UnknownCommand for any other word after /pawl. Empty means no command.
	Name string
	// Text is the visible text after the name: all lines for commands with policy.TakesLines; the backend for "use";
	// the word itself for unknown commands; else the rest of the line.
	Text string
	// Mention means that the comment mentions the App's name instead of /pawl.
	Mention bool
}

func (c Command) Works() bool {
	return policy.CommandNamed(c.Name).Effect == policy.BeginsWork
}

// thanks reports whether the mention only thanks.
func (c Command) thanks() bool {
	if !c.Mention || c.Text == "" {
		return false
	}
	return courteous(NewPage(c.Text).Own())
}

// ParseCommand finds the command in a comment, review or description. A command starts a line of the writer's own
// visible words, outside quotes, code, HTML comments and quoted e-mail. The line is indented by less than four columns.
// Signs of list items, headings and emphasis may precede it. A doubtful line is not a command, but Near finds it.
//
// slug is the App's name; a line that starts with its mention means solve, and "@slug stop" alone means stop. The
// first command counts, but a stop counts anywhere.
func ParseCommand(body, slug string) (Command, bool) { return NewPage(body).Command(slug) }

// Command finds the page's command; see ParseCommand.
func (p Page) Command(slug string) (Command, bool) {
	lines := p.lines()
	var first Command
	for i, line := range lines {
		c, ok := commandOn(line, slug)
		if !ok {
			continue
		}
		if c.Name != "stop" && first.Name != "" {
			continue
		}
		if policy.CommandNamed(c.Name).Takes == policy.TakesLines {
			c.Text = task(c.Text, lines[i+1:], slug)
		}
		c.Text = strings.TrimSpace(Visible(c.Text))
		if c.Name == "stop" {
			return c, true
		}
		first = c
	}
	return first, first.Name != ""
}

// commandOn parses one line. The text may contain the start of a comment that ends on a later line.
func commandOn(l line, slug string) (Command, bool) {
	if l.kind != plainLine {
		return Command{}, false
	}
	written := unmarked(l.text)
	if rest, ok := afterMention(written, slug); ok {
		if commandWord(rest) == "stop" {
			return Command{Name: "stop", Mention: true}, true
		}
		return Command{Name: "solve", Text: rest, Mention: true}, true
	}
	rest, ok := afterName(written, "/pawl")
	if !ok {
		return Command{}, false
	}
	word, text := strings.TrimSpace(rest), ""
	if i := strings.IndexFunc(word, unicode.IsSpace); i >= 0 {
		word, text = word[:i], word[i:]
	}
	name := commandWord(word)
	switch {
	case !policy.IsCommand(name):
		return Command{Name: policy.UnknownCommand, Text: word}, true
	case policy.CommandNamed(name).Takes == policy.TakesWord:
		text, _, _ = strings.Cut(strings.Join(strings.Fields(text), " "), " ")
		return Command{Name: name, Text: strings.Trim(text, "`")}, true
	}
	return Command{Name: name, Text: text}, true
}

// sign matches the Markdown sign of a list item, a heading or emphasis, or a backslash.
var sign = regexp.MustCompile(`^(?:[-*+][ \t]|\d{1,9}[.)][ \t]|#{1,6}[ \t]|[*_]{1,3}|\\)`)

// unmarked returns a line from its first word on, without the emphasis around that word.
func unmarked(line string) string {
	emphasis := ""
	for {
		line = strings.TrimLeftFunc(line, shapeless)
		s := sign.FindString(line)
		if s == "" {
			break
		}
		if strings.Trim(s, "*_") == "" {
			emphasis = s + emphasis
		}
		line = line[len(s):]
	}
	return strings.Replace(line, emphasis, "", 1)
}

// shapeless reports whether a character is white space or invisible.
func shapeless(r rune) bool { return unicode.IsSpace(r) || policy.Invisible(r) }

// commandWord normalises a word such as "Stop!", "solve:" or "**retry**".
func commandWord(word string) string {
	word = strings.Map(narrow, Visible(word))
	return strings.ToLower(strings.TrimFunc(word, func(r rune) bool { return !unicode.IsLetter(r) }))
}

// afterMention returns the text after a mention of slug at the start.
func afterMention(text, slug string) (rest string, ok bool) {
	if slug == "" {
		return "", false
	}
	if rest, ok := afterName(text, "@"+slug+"[bot]"); ok {
		return rest, true
	}
	return afterName(text, "@"+slug)
}

// afterName returns the text after a name at the start, without punctuation. /pawl/x, @slug-other, @slug/team and
// @slug.example are other names.
func afterName(text, name string) (rest string, ok bool) {
	rest, ok = cutPrefixFold(text, name)
	if !ok || nameGoesOn.MatchString(rest) {
		return "", false
	}
	return strings.TrimLeft(rest, ",:;.!?-–—，：；。！？、"), true
}

// nameGoesOn matches text that makes the name before it a part of another name.
var nameGoesOn = regexp.MustCompile(`^(?:\w|[-./@'’]\w|/)`)

// task joins a command's line with the following lines, up to the next command and without quoted e-mail.
func task(start string, behind []line, slug string) string {
	lines := []string{start}
	for _, l := range behind {
		if _, ok := commandOn(l, slug); ok {
			break
		}
		if l.kind != mailLine {
			lines = append(lines, l.text)
		}
	}
	return strings.Join(lines, "\n")
}

// cutPrefixFold is strings.CutPrefix for an ASCII prefix in any case and width. It skips invisible characters.
func cutPrefixFold(text, prefix string) (rest string, ok bool) {
	rest = text
	for rest != "" && prefix != "" {
		r, size := utf8.DecodeRuneInString(rest)
		rest = rest[size:]
		if policy.Invisible(r) {
			continue
		}
		if unicode.ToLower(narrow(r)) != unicode.ToLower(rune(prefix[0])) {
			return text, false
		}
		prefix = prefix[1:]
	}
	if prefix != "" {
		return text, false
	}
	return strings.TrimLeftFunc(rest, policy.Invisible), true
}

// narrow maps a full-width character, as from a Chinese or Japanese keyboard, to ASCII. Unicode orders U+FF01 to U+FF5E
// as ASCII.
func narrow(r rune) rune {
	if '！' <= r && r <= '～' {
		return r - '！' + '!'
	}
	return r
}

// Triggers reports whether a repository's triggers accept feedback of a source. The configuration's words are
// command, mention, label, assignment, review, comment, description, check_run, base; an empty list accepts all.
// Buttons are always accepted.
func Triggers(source policy.Source, c Command, triggers []string) bool {
	if source == policy.FromButton || len(triggers) == 0 {
		return true
	}
	return slices.Contains(triggers, trigger(source, c))
}

// trigger returns the configuration's word for feedback of a source.
func trigger(source policy.Source, c Command) string {
	if c.Mention {
		return "mention"
	}
	switch source {
	case policy.FromAssignment, policy.FromBase, policy.FromLabel:
		return string(source) // also with a command
	default:
	}
	if c.Name != "" {
		return "command"
	}
	if source == policy.FromReviewComment {
		return "review"
	}
	return string(source)
}

// Replies to an ignored remark.
const (
	Refused           = "refused"    // the user may not write to the repository
	NotACommand       = "no_order"   // a mention within a line is not a command
	LooksLikeACommand = "near_order" // the text only looks like a command
	Maintainer        = "maintainer" // the command needs the maintain permission
)

// byPerson reports whether a user just wrote the remark.
func byPerson(r Remark) bool {
	if r.Actor.Bot() || r.App != 0 {
		return false
	}
	return !r.Edited && isComment(r.Source)
}

var codeSpan = regexp.MustCompile("`+[^`]*`+")

// Mentions reports whether the writer's own words mention the App inside a line, which is not a command.
func (p Page) Mentions(slug string) bool {
	return slices.ContainsFunc(p.plain(), func(line string) bool { return mentions(line, slug) })
}

// plain returns the lines of the writer's own words as a reader sees them, without code.
func (p Page) plain() (lines []string) {
	for _, l := range p.lines() {
		if l.kind == plainLine {
			lines = append(lines, codeSpan.ReplaceAllString(Visible(l.text), "`"))
		}
	}
	return lines
}

func mentions(text, slug string) bool {
	for i := range text {
		if i > 0 && nameBefore.MatchString(text[i-1:i]) {
			continue
		}
		if _, ok := afterMention(text[i:], slug); ok {
			return true
		}
	}
	return false
}

// nameBefore matches a character after which a mention would be a part of another word.
var nameBefore = regexp.MustCompile(`[\w./@-]`)

// near matches what may be meant as a command: /pawl inside a line or joined to a command's name, or a line that starts
// with pawl.
var near = regexp.MustCompile(`(?i)(?:^|[^\w./@-])/pawl[^\pL\pN]*(\pL+)|^\P{L}*pawl[^\pL\pN]+(\pL+)`)

// polite matches what users write after a command besides punctuation.
var polite = regexp.MustCompile(`(?i)^(?:[^\pL\pN]|\b(?:please|now|thanks|thank you)\b)*$`)

// tag matches an HTML tag, which a reader does not see.
var tag = regexp.MustCompile(`</?[a-zA-Z][^<>]*>`)

// Attempt is what a text without a command seems to mean.
type Attempt struct {
	Name string // of the command; empty for none
	// Whole means that at most polite words follow the command on its line. Otherwise the text may be prose about the
	// command, or addressed to Pawl: "Pawl: status must be 404". A stop with its slash is always whole.
	Whole bool
}

// Near finds what a text without a command seems to mean. Code counts if the text holds nothing else.
func (p Page) Near(slug string) (a Attempt) {
	only := strings.Trim(p.Own(), "`~ \t\n")
	if c, ok := ParseCommand(only, slug); ok && !strings.Contains(only, "\n") {
		return Attempt{Name: c.Name, Whole: true}
	}
	for _, line := range p.plain() {
		line = tag.ReplaceAllString(strings.Map(narrow, line), "")
		for _, m := range near.FindAllStringSubmatchIndex(line, -1) {
			switch found := attempt(line, m); {
			case found.Whole:
				return found
			case a.Name == "":
				a = found
			}
		}
	}
	return a
}

// attempt reads a match of near.
func attempt(line string, m []int) Attempt {
	slashed := m[2] >= 0
	word := max(m[2], m[4]) // one is -1
	name, rest := strings.ToLower(line[word:m[1]]), line[m[1]:]
	if !policy.IsCommand(name) {
		return Attempt{}
	}
	if policy.CommandNamed(name).Takes == policy.TakesWord {
		_, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	urgent := slashed && name == "stop"
	return Attempt{Name: name, Whole: urgent || polite.MatchString(rest)}
}
