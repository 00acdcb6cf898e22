package feedback

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// moment matches a date, a time of a day, a hash or a UUID, number a number.
const (
	moment = `\b1[5-9]\d{8}(?:\d{3})?\b|\b\d{4}[-/]\d\d[-/]\d\d(?:t\d\d(?::\d\d){0,2}(?:\.\d+)?z?)?|\b\d{1,2}[./-](?:\d{1,2}|` + month + `)[./-]\d{2,4}\b|\b\d{1,2}\.? (?:de |di )?\pL{3,12}\.? (?:de )?\d{4}\b|\b\d{1,2}h\d\d\b|(?:\d+[年月日時时分秒])+|\d{1,2}(?::\d\d){1,2}(?:\.\d+)?(?: ?[ap]m|z)?\b` +
		`|\b(?:\d{1,2} )?` + month + ` \d{1,4}(?:st|nd|rd|th)?(?:, \d{4})?\b|\b[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b`
	month  = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*`
	number = `\d[\d.,]*`
)

var (
	// managed matches the markers around Pawl's block in a description. They are found in code too: a description
	// that ends in an open code block makes Pawl's appended block code.
	managed = regexp.MustCompile(`(?is)<!--\s*pawl:(begin|end)\b.*?-->`)

	// token matches what programs rewrite: dates, times, hashes and numbers.
	token = regexp.MustCompile(`(?i)` + moment + `|` + number)

	// moving matches what changes by itself: ages, and lines of only counters.
	moving = regexp.MustCompile(`(?im)\b(?:an?|\d+) ?(?:[smhdw]|secs?|mins?|hrs?|(?:second|minute|hour|day|week|month)s?) ago\b|\b(?:vor|il y a|hace|há) \d+ \pL+|\d+ ?(?:秒|分|分钟|時間|小时|天|日)前` +
		`|^(?:[^\w\n]*\b(?:views?|visits?|visitors|downloads|stars|counter|comments|heartbeats?|build|run)[^\w\n]+` + number + `)+[^\w\n]*$`)

	// syncing matches words about updating, syncing and generation.
	syncing = regexp.MustCompile(`(?i)\b(?:updated|edited|modified|generated|refreshed|synced|synchroni[sz]ed|checked|reviewed|scanned|rebased|imported|executed|seen|built|deployed|ran|taken|pulled|fetched|mirrored|timestamp|as of|build:|stand:|sync(?: time| status)? ?[@:])` +
		`|(?:^|\PL)(?:last|latest|automatically|letzter?|dernière|[uú]ltim[oa]|laatste?|senast|sist|ostatnia) \pL+` +
		`|aktuali[sz]|synchron|synkron|sincroni|erzeugt|mise à jour|actualiza|atualiza|aggiorna|bijgewerkt|uppdater|opdater|oppdater|güncelle|обновлен|更新|同期|同步|업데이트|동기화`)

	// written matches a time stamp, with its weekday.
	written = regexp.MustCompile(`(?i)(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b[^\w\n]*)?(?:` + moment + `)`)

	// wished matches words that make a date a wish.
	wished = regexp.MustCompile(`(?i)\b(?:deadline|due|expir\w*|(?:last|latest|letzter?) (?:day|date|tag)|must|should|needs?|until|frist|fällig)\b|\b(?:to|by|before|bis(?: zum)?|avant le|antes del?|entro il) \d|期限|締切`)

	// clause ends at the end of a sentence or a line; the cells of a table row belong together.
	clause = regexp.MustCompile(`[^\n;]*?(?:[.!?] |[\n;]|$)`)
	markup = regexp.MustCompile(`</?[a-zA-Z]+ ?/?>`)

	// checkbox matches a task list's box up to its closing bracket, also in nested lists and in quotes.
	checkbox = regexp.MustCompile(`^((?:[\s>]*(?:[-*+]|\d{1,9}[.)])\s+)+)\[[xX ]\](\s|$)`)
)

// Content returns the visible text of a description without Pawl's block. Line endings, white space and task boxes
// are normalised. Indentation stays, since Markdown needs it. Pawl treats descriptions with equal Content as equal.
//
// Anyone can write the markers of Pawl's block. Text between them reaches neither a diff nor a prompt made from
// Content, so a forged block hides text from Pawl and not from people. Nothing is removed unless there is exactly
// one begin marker and one end marker after it.
func Content(body string) string { return NewPage(body).Content() }

func (p Page) Content() string {
	text := p.withoutManaged().Visible()
	var kept []string
	for line := range strings.SplitSeq(text, "\n") {
		line = tidyLine(line)
		blank := line == ""
		if blank && (len(kept) == 0 || kept[len(kept)-1] == "") {
			continue
		}
		kept = append(kept, line)
	}
	if n := len(kept); n > 0 && kept[n-1] == "" {
		kept = kept[:n-1]
	}
	return strings.Join(kept, "\n")
}

// DescriptionDiff compares the content of two versions of a description, as a unified diff with three lines of
// context. changed is false and diff empty if they differ only in white space or in what Content leaves out.
func DescriptionDiff(from, to string) (diff string, changed bool) {
	before, after := Content(from), Content(to)
	if sameWords(before, after) {
		return "", false
	}
	before, after = endLine(before), endLine(after)
	// The only error is an edit that does not fit its text.
	diff, _ = udiff.ToUnified("description before", "description now", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	return diff, true
}

// moves is how many values of a token were worked on before further ones are ignored: a user may change a port
// twice. Our choice.
const moves = 4

// stampWords is how many words may separate a word about syncing from its time: "synced from Linear ENG-12 on". Our
// choice.
const stampWords = 4

// still is the visible content without what changes by itself. A clause with a word about syncing loses its times,
// unless it expresses a wish.
func still(content string) string {
	return clause.ReplaceAllStringFunc(moving.ReplaceAllString(rendered(content), "…"), func(c string) string {
		if !stamp(c) {
			return c
		}
		return written.ReplaceAllString(c, "…")
	})
}

// stamp reports whether a clause says when something was synced.
func stamp(clause string) bool {
	if wished.MatchString(clause) {
		return false
	}
	at := written.FindStringIndex(clause)
	if at == nil {
		return false
	}
	return slices.ContainsFunc(syncing.FindAllStringIndex(clause, -1), func(word []int) bool {
		gap := clause[min(word[1], at[1]):max(word[0], at[0], min(word[1], at[1]))]
		return len(strings.Fields(gap)) <= stampWords
	})
}

// rendered is a content without emphasis, code marks and tags.
func rendered(content string) string {
	p := readPage(content)
	var b strings.Builder
	for i := range len(content) {
		if p.class[i] == between && strings.IndexByte("*_~`", content[i]) >= 0 {
			continue
		}
		b.WriteByte(content[i])
	}
	return strings.ReplaceAll(markup.ReplaceAllString(b.String(), ""), "_", " ")
}

// onlyMoves reports whether two contents differ only in what changes by itself, or in tokens that had several
// values in the known contents.
func onlyMoves(was, now string, known []string) bool {
	shape := func(text string) string { return token.ReplaceAllString(still(text), "\x00") } // does not occur in contents
	if sameWords(still(was), still(now)) {
		return true
	}
	if !sameWords(shape(was), shape(now)) {
		return false
	}
	known = slices.DeleteFunc(slices.Clone(known[max(0, len(known)-4*moves):]), func(k string) bool { return !sameWords(shape(k), shape(now)) })
	before := token.FindAllString(still(was), -1)
	for i, value := range token.FindAllString(still(now), -1) {
		values := map[string]bool{}
		for _, k := range known {
			values[token.FindAllString(still(k), -1)[i]] = true
		}
		if value != before[i] && len(values) < moves {
			return false
		}
	}
	return true
}

// Additions returns the content of each run of lines that an edit added or changed; empty if it only removed text.
func Additions(from, to string) []string {
	before, after := Content(from), Content(to)
	var added []string
	for _, e := range udiff.Lines(endLine(before), endLine(after)) {
		if text := strings.TrimSpace(e.New); text != "" {
			added = append(added, text)
		}
	}
	return added
}

// withoutManaged is the page without Pawl's block and its markers. Visible removes markers that do not form a
// block.
func (p Page) withoutManaged() Page {
	marks := managed.FindAllStringSubmatchIndex(p.body, -1)
	if len(marks) != 2 {
		return p
	}
	name := func(m []int) string { return strings.ToLower(p.body[m[2]:m[3]]) }
	if name(marks[0]) != "begin" || name(marks[1]) != "end" {
		return p
	}
	return NewPage(p.body[:marks[0][0]] + p.body[marks[1][1]:])
}

// tidyLine keeps a line's indentation, collapses other white space, and unticks a task's box.
func tidyLine(line string) string {
	text := strings.TrimLeft(line, " \t")
	words := strings.Join(strings.Fields(text), " ")
	if words == "" {
		return ""
	}
	return checkbox.ReplaceAllString(line[:len(line)-len(text)]+words, "${1}[ ]${2}")
}

func sameWords(a, b string) bool {
	return strings.Join(strings.Fields(a), " ") == strings.Join(strings.Fields(b), " ")
}

func unixLines(text string) string {
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// endLine ends text with a line feed, so that a diff need not mention a missing one.
func endLine(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}
