package feedback

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy"
)

type Command struct {
	// Name is in policy.Commands, or policy.UnknownCommand for any other word after /pawl. Empty means no command.
	Name string
	// Text is the visible text after the name: all lines for solve, ask, plan and go; the backend for use; the word
	// itself for unknown; else the rest of the line.
	Text string
	// Mention means that the comment mentions the App's name instead of /pawl.
	Mention bool
}

// Works reports whether the command asks for work.
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
// visible words: no quotes, code, HTML comments, quoted e-mail, and less than four columns of indentation. In doubt a
// line is no command.
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
	written := strings.TrimLeft(l.text, " ")
	if rest, ok := afterMention(written, slug); ok {
		if commandWord(rest) == "stop" {
			return Command{Name: "stop", Mention: true}, true
		}
		return Command{Name: "solve", Text: rest, Mention: true}, true
	}
	rest, ok := cutPrefixFold(written, "/pawl")
	if !ok {
		return Command{}, false
	}
	if rest != "" && !startsWithSpace(rest) { // another word, such as /pawlish
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

// commandWord normalises a word such as "Stop!" or "solve:".
func commandWord(word string) string {
	return strings.ToLower(strings.TrimRight(strings.TrimSpace(Visible(word)), ".,:;!?"))
}

// afterMention returns the text after a mention of slug. @slug-other, @slug/team and @slug.example are other names.
func afterMention(text, slug string) (rest string, ok bool) {
	if slug == "" {
		return "", false
	}
	rest, ok = cutPrefixFold(text, "@"+slug)
	if !ok {
		return "", false
	}
	rest, _ = cutPrefixFold(rest, "[bot]")
	if rest == "" || startsWithSpace(rest) {
		return rest, true
	}
	if !strings.ContainsRune(",:;.!?", rune(rest[0])) {
		return "", false
	}
	rest = rest[1:]
	if rest != "" && !startsWithSpace(rest) {
		return "", false
	}
	return rest, true
}

// task joins a command's line with the following lines, up to the next command and without quoted e-mail.
func task(start string, behind []line, slug string) string {
	said := []string{start}
	for _, l := range behind {
		if _, ok := commandOn(l, slug); ok {
			break
		}
		if l.kind != mailLine {
			said = append(said, l.text)
		}
	}
	return strings.Join(said, "\n")
}

// cutPrefixFold is strings.CutPrefix for an ASCII prefix in any case.
func cutPrefixFold(text, prefix string) (rest string, ok bool) {
	if len(text) < len(prefix) || !strings.EqualFold(text[:len(prefix)], prefix) {
		return text, false
	}
	return text[len(prefix):], true
}

func startsWithSpace(text string) bool {
	return strings.IndexFunc(text, unicode.IsSpace) == 0
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

// Replies to an ignored remark: its writer may not command Pawl, may not give this command, or gave none.
const (
	Refused    = "refused"
	NoOrder    = "no_order"
	Maintainer = "maintainer"
)

// byPerson reports whether a user just wrote the remark.
func byPerson(r Remark) bool {
	if r.Actor.Bot() || r.App != 0 {
		return false
	}
	return !r.Edited && spoken(r.Source)
}

var codeSpan = regexp.MustCompile("`+[^`]*`+")

// Mentions reports whether the writer's own words mention the App inside a line, which is no command.
func (p Page) Mentions(slug string) bool {
	return slices.ContainsFunc(p.lines(), func(l line) bool { return l.kind == plainLine && mentions(l.text, slug) })
}

func mentions(line, slug string) bool {
	said := codeSpan.ReplaceAllString(Visible(line), "`")
	for i := range said {
		if !wordBegins(said, i) {
			continue
		}
		if _, ok := afterMention(said[i:], slug); ok {
			return true
		}
	}
	return false
}

// wordBegins reports whether a mention may begin at an offset.
func wordBegins(s string, at int) bool {
	if at == 0 || s[at-1] == '(' {
		return true
	}
	return startsWithSpace(s[at-1:])
}
