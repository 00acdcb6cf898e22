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
	// managed matches the markers around the block that Pawl keeps in a description. They are found in code
	// too: a description that ends in an open code block makes code of the block that Pawl appends.
	managed = regexp.MustCompile(`(?is)<!--\s*pawl:(begin|end)\b.*?-->`)

	// token matches what programs write anew: dates, times of a day, hashes and numbers.
	token = regexp.MustCompile(`(?i)` + moment + `|` + number)

	// moving matches what moves wherever it stands: ages, and lines of nothing but counters.
	moving = regexp.MustCompile(`(?im)\b(?:an?|\d+) ?(?:[smhdw]|secs?|mins?|hrs?|(?:second|minute|hour|day|week|month)s?) ago\b|\b(?:vor|il y a|hace|há) \d+ \pL+|\d+ ?(?:秒|分|分钟|時間|小时|天|日)前` +
		`|^(?:[^\w\n]*\b(?:views?|visits?|visitors|downloads|stars|counter|comments|heartbeats?|build|run)[^\w\n]+` + number + `)+[^\w\n]*$`)

	// syncing matches words about updating, syncing and generation.
	syncing = regexp.MustCompile(`(?i)\b(?:updated|edited|modified|generated|refreshed|synced|synchroni[sz]ed|checked|reviewed|scanned|rebased|imported|executed|seen|built|deployed|ran|taken|pulled|fetched|mirrored|timestamp|as of|build:|stand:|sync(?: time| status)? ?[@:])` +
		`|(?:^|\PL)(?:last|latest|automatically|letzter?|dernière|[uú]ltim[oa]|laatste?|senast|sist|ostatnia) \pL+` +
		`|aktuali[sz]|synchron|synkron|sincroni|erzeugt|mise à jour|actualiza|atualiza|aggiorna|bijgewerkt|uppdater|opdater|oppdater|güncelle|обновлен|更新|同期|同步|업데이트|동기화`)

	// written matches the moment of a stamp, with its weekday.
	written = regexp.MustCompile(`(?i)(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b[^\w\n]*)?(?:` + moment + `)`)

	// wished matches words with which a date is a wish.
	wished = regexp.MustCompile(`(?i)\b(?:deadline|due|expir\w*|(?:last|latest|letzter?) (?:day|date|tag)|must|should|needs?|until|frist|fällig)\b|\b(?:to|by|before|bis(?: zum)?|avant le|antes del?|entro il) \d|期限|締切`)

	// clause ends where a sentence or a line ends; the cells of a row belong together.
	clause = regexp.MustCompile(`[^\n;]*?(?:[.!?] |[\n;]|$)`)
	markup = regexp.MustCompile(`</?[a-zA-Z]+ ?/?>`)

	// checkbox matches a task list's box up to its closing bracket, also in nested lists and in quotes.
	checkbox = regexp.MustCompile(`^((?:[\s>]*(?:[-*+]|\d{1,9}[.)])\s+)+)\[[xX ]\](\s|$)`)
)

// Content returns what a description says to its readers: visible text without the block that Pawl manages,
// with line endings, white space and the state of task list boxes made equal. Indentation stays, since
// Markdown means something by it. Two descriptions with the same Content are the same to Pawl.
//
// Anybody can write the markers of Pawl's block. What stands between them reaches neither a diff nor a prompt
// that is built from Content, so a forged block hides text from Pawl and not from people. Where the markers
// are not exactly one beginning and one end behind it, nothing between them is removed.
func Content(body string) string { return NewPage(body).Content() }

// Content is the content of a description, as the function of that name says.
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

// DescriptionDiff compares the content of two versions of a description. changed is false where they differ
// in nothing but white space or in what Content leaves out, and diff is then empty. diff is a unified diff
// with three lines of context.
func DescriptionDiff(from, to string) (diff string, changed bool) {
	before, after := Content(from), Content(to)
	if sameWords(before, after) {
		return "", false
	}
	before, after = endLine(before), endLine(after)
	// An error would be that edits do not fit their text.
	diff, _ = udiff.ToUnified("description before", "description now", before, udiff.Lines(before, after), udiff.DefaultContextLines)
	return diff, true
}

// moves is how many values of a part of a description were worked on until a further
// one is none: a person may well change a port twice. It is our choice.
const moves = 4

// stampWords is how many words may stand between a word about syncing and its moment: "synced from Linear ENG-12 on". It
// is our choice.
const stampWords = 4

// still is a content as a reader sees it, without what moves by itself. Every clause in which a moment follows or
// precedes a word about syncing loses its moments, unless it tells of a wish.
func still(content string) string {
	return clause.ReplaceAllStringFunc(moving.ReplaceAllString(rendered(content), "…"), func(c string) string {
		if !stamp(c) {
			return c
		}
		return written.ReplaceAllString(c, "…")
	})
}

// stamp reports whether a clause says when something was synchronised.
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

// rendered is a content without the signs of emphasis and code, and without tags.
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

// onlyMoves reports whether two contents of a text differ only in what moves by itself: in what says so, or in tokens
// that had so many values in the known contents.
func onlyMoves(was, now string, known []string) bool {
	shape := func(text string) string { return token.ReplaceAllString(still(text), "\x00") } // which no content has
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

// Additions returns what an edit put into a description: the content of each run
// of lines that were added or changed. It is empty where the edit only took away.
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

// withoutManaged is the page without Pawl's block and its markers. Visible removes markers
// that do not make a block, as it does with every comment.
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

// tidyLine keeps a line's indentation, makes every other run of white space one
// space, and unticks the box of a task.
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

// endLine ends text with a line feed, so that a diff need not mention its lack.
func endLine(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}
