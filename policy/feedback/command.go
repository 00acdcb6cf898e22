package feedback

import (
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/policy"
)

type Command struct {
	// Name is a name in policy.Commands, or policy.UnknownCommand for any other word after /pawl, which Pawl answers
	// with help. The zero Command is no command.
	Name string
	// Text is the visible text after the name: the task for solve, ask, plan and go, which may have many lines; the
	// backend for use; the word itself for unknown; the rest of the line for the others.
	Text string
	// Mention says that the comment mentions the App's name instead of /pawl.
	Mention bool
}

// Works reports whether it asks for work, as a remark without a command does.
func (c Command) Works() bool {
	return policy.CommandNamed(c.Name).Effect == policy.BeginsWork
}

// thanks reports whether the mention is followed by thanks and no task.
func (c Command) thanks() bool {
	if !c.Mention || c.Text == "" {
		return false
	}
	return courteous(NewPage(c.Text).Own())
}

// ParseCommand finds the command in the body of a comment, review or description. A command is the first thing on a
// line, in the writer's own visible words: not in quotes, code, HTML comments or the quoted part of an e-mail, and
// not indented by four columns or more. In doubt a line is no command.
//
// slug is the App's name; a line that starts with its mention means solve. The first command counts, but a stop
// counts anywhere. "@slug stop" alone on its line also means stop: its writer does not want an agent to start.
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

// commandOn reads one line. The text of the command is as written; it may contain the start of a comment that ends
// further down.
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

// commandWord normalises a word: users write "Stop!" and "solve:".
func commandWord(word string) string {
	return strings.ToLower(strings.TrimRight(strings.TrimSpace(Visible(word)), ".,:;!?"))
}

// afterMention returns the text after a mention of slug at the start. The mention must be whole: @slug-other,
// @slug/team and @slug.example are others.
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

// task joins a solve command's line with the lines after it, up to the next command and without e-mail quotations.
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

// startsWithSpace reports whether text starts with any white space; some keyboards make a no-break space.
func startsWithSpace(text string) bool {
	return strings.IndexFunc(text, unicode.IsSpace) == 0
}

// Triggers reports whether a repository with these triggers accepts feedback of a source; no triggers accept all.
// The words are from the repository's configuration: command, mention, label, assignment, review, comment,
// description, check_run, base. Buttons are always accepted.
func Triggers(source policy.Source, c Command, triggers []string) bool {
	if source == policy.FromButton || len(triggers) == 0 {
		return true
	}
	return slices.Contains(triggers, trigger(source, c))
}

// trigger is the configuration's word for feedback of a source.
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

// The replies to an ignored remark: its writer may not command Pawl, may not give this command, or gave none.
const (
	Refused    = "refused"
	NoOrder    = "no_order"
	Maintainer = "maintainer"
)

// byPerson reports whether a user wrote it just now.
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

// wordBegins reports whether a mention may begin at an offset: at the start, after white space or a bracket.
func wordBegins(s string, at int) bool {
	if at == 0 || s[at-1] == '(' {
		return true
	}
	return startsWithSpace(s[at-1:])
}
