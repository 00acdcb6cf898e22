package feedback

import (
	"regexp"
	"slices"
	"strings"
)

var (
	// attribution matches the line, or up to three lines, that a mail program puts before the text it quotes.
	attribution = regexp.MustCompile(`(?is)^\s*(?:on|am|le|el|il|em|op)\b.{4,400}\b(?:wrote|schrieb.{0,200}|a écrit|escribió|ha scritto|escreveu|schreef.{0,200})\s*:\s*$`)

	// divider matches the line behind which a mail program puts the whole
	// message that is answered or passed on.
	divider = regexp.MustCompile(`(?i)^\s*(?:-{2,}\s*(?:original|forwarded|ursprüngliche)\s.{0,40}-{2,}|begin forwarded message:)\s*$`)

	// mailFrom and mailHead match the head of such a message.
	mailFrom = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:from|von|de)\s?:[*]{0,2}\s+\S`)
	mailHead = regexp.MustCompile(`(?i)^\s*[*]{0,2}(?:sent|date|to|cc|subject|gesendet|datum|an|betreff|envoyé|à|objet)\s?:[*]{0,2}(?:\s|$)`)
)

// markMail marks the quoted part of an answer that came by e-mail. What a mail program puts below its
// divider, and text below an attribution that carries no signs of quoting, goes on to the end: where the
// writer's own words would begin again, nobody can tell.
func markMail(lines []line) {
	for i := 0; i < len(lines); i++ {
		if lines[i].kind != plainLine {
			continue
		}
		if divider.MatchString(lines[i].text) || headed(lines[i:]) {
			asMail(lines[i:])
			return
		}
		n := attributed(lines[i:])
		if n == 0 {
			continue
		}
		end, quoted := i+n, false
		for end < len(lines) && (lines[end].kind == quotedLine || strings.TrimSpace(lines[end].text) == "") {
			quoted = quoted || lines[end].kind == quotedLine
			end++
		}
		if !quoted {
			end = len(lines)
		}
		asMail(lines[i:end])
		i = end - 1
	}
}

func attributed(lines []line) int {
	var text string
	for n, l := range lines[:min(3, len(lines))] {
		if l.kind != plainLine || strings.TrimSpace(l.text) == "" {
			return 0
		}
		text += l.text + "\n"
		if attribution.MatchString(text) {
			return n + 1
		}
	}
	return 0
}

func headed(lines []line) bool {
	head := func(l line) bool { return mailHead.MatchString(l.text) }
	return mailFrom.MatchString(lines[0].text) && slices.ContainsFunc(lines[1:min(4, len(lines))], head)
}

func asMail(lines []line) {
	for i := range lines {
		lines[i].kind = mailLine
	}
}
