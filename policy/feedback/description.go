package feedback

import (
	"regexp"
	"slices"
	"strings"

	"github.com/aymanbagabas/go-udiff"
)

// moment matches a date, a time of day, a hash or a UUID.
const (
	moment = `\b1[5-9]\d{8}(?:\d{3})?\b|\b\d{4}[-/]\d\d[-/]\d\d(?:t\d\d(?::\d\d){0,2}(?:\.\d+)?z?)?|\b\d{1,2}[./-](?:\d{1,2}|` + month + `)[./-]\d{2,4}\b|\b\d{1,2}\.? (?:de |di )?\pL{3,12}\.? (?:de )?\d{4}\b|\b\d{1,2}h\d\d\b|(?:\d+[年月日時时分秒])+|\d{1,2}(?::\d\d){1,2}(?:\.\d+)?(?: ?[ap]m|z)?\b` +
		`|\b(?:\d{1,2} )?` + month + ` \d{1,4}(?:st|nd|rd|th)?(?:, \d{4})?\b|\b[0-9a-f]{7,}(?:-[0-9a-f]{4,})*\b`
	month  = `(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*`
	number = `\d[\d.,]*`
)

var (
	// managed matches the markers of Pawl's block in a description, even in code: an unclosed code block would include
	// the block that Pawl appends.
	managed = regexp.MustCompile(`(?is)<!--\s*pawl:(begin|end)\b.*?-->`)

	token = regexp.MustCompile(`(?i)` + moment + `|` + number)

	// moving matches text that changes by itself: ages, and lines of only counters.
	moving = regexp.MustCompile(`(?im)\b(?:an?|\d+) ?(?:[smhdw]|secs?|mins?|hrs?|(?:second|minute|hour|day|week|month)s?) ago\b|\b(?:vor|il y a|hace|há) \d+ \pL+|\d+ ?(?:秒|分|分钟|時間|小时|天|日)前` +
		`|^(?:[^\w\n]*\b(?:views?|visits?|visitors|downloads|stars|counter|comments|heartbeats?|build|run)[^\w\n]+` + number + `)+[^\w\n]*$`)

	// syncing matches words about updating, syncing and generation.
	syncing = regexp.MustCompile(`(?i)\b(?:updated|edited|modified|generated|refreshed|synced|synchroni[sz]ed|checked|reviewed|scanned|rebased|imported|executed|seen|built|deployed|ran|taken|pulled|fetched|mirrored|timestamp|as of|build:|stand:|sync(?: time| status)? ?[@:])` +
		`|(?:^|\PL)(?:last|latest|automatically|letzter?|dernière|[uú]ltim[oa]|laatste?|senast|sist|ostatnia) \pL+` +
		`|aktuali[sz]|synchron|synkron|sincroni|erzeugt|mise à jour|actualiza|atualiza|aggiorna|bijgewerkt|uppdater|opdater|oppdater|güncelle|обновлен|更新|同期|同步|업데이트|동기화`)

	// written matches a time stamp, with its weekday.
	written = regexp.MustCompile(`(?i)(?:\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]*\b[^\w\n]*)?(?:` + moment + `)`)

	// wished matches words that make a date part of a request, such as a deadline.
	wished = regexp.MustCompile(`(?i)\b(?:deadline|due|expir\w*|(?:last|latest|letzter?) (?:day|date|tag)|must|should|needs?|until|frist|fällig)\b|\b(?:to|by|before|bis(?: zum)?|avant le|antes del?|entro il) \d|期限|締切`)

	// clause matches a sentence or a line. Cells of a table row belong together.
	clause = regexp.MustCompile(`[^\n;]*?(?:[.!?] |[\n;]|$)`)
	markup = regexp.MustCompile(`</?[a-zA-Z]+ ?/?>`)

	// checkbox matches a task list's box, also in nested lists and quotes.
	checkbox = regexp.MustCompile(`^((?:[\s>]*(?:[-*+]|\d{1,9}[.)])\s+)+)\[[xX ]\](\s|$)`)
)

// Content returns a description's visible text without Pawl's block, with normalised line endings, white space and
// task boxes. Indentation stays for Markdown.
//
// Content removes Pawl's block only if exactly one begin marker and then one end marker exist: a forged block must not
// hide text.
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

// DescriptionDiff returns a unified diff of two versions' contents with three lines of context. changed is false if
// only white space differs.
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

// moves is the number of values at which a token counts as changing by itself: a user may change a port twice (our
// choice).
const moves = 4

// stampWords limits the words between a word about syncing and its time: "synced from Linear ENG-12 on" (our choice).
const stampWords = 4

// still removes text that changes by itself. A clause about syncing loses its times, unless they are part of a request.
func still(content string) string {
	return clause.ReplaceAllStringFunc(moving.ReplaceAllString(rendered(content), "…"), func(c string) string {
		if !stamp(c) {
			return c
		}
		return written.ReplaceAllString(c, "…")
	})
}

// stamp reports whether a clause tells the time of a sync.
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

// rendered removes emphasis, code marks and tags.
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

// onlyMoves reports whether two contents differ only in text that changes by itself, or in tokens with at least moves
// known values.
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

// Additions returns each run of lines that an edit added or changed.
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

// withoutManaged removes Pawl's block.
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

// tidyLine keeps indentation, collapses other white space, and unticks a task's box.
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
	text = strings.TrimPrefix(text, "\ufeff")
	return strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(text)
}

// endLine adds a line feed, so that diffs do not report a missing one.
func endLine(text string) string {
	if text == "" {
		return ""
	}
	return text + "\n"
}
