package feedback

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"

	"github.com/pawlbot/pawl/policy"
)

// Authored is the text that an agent wrote: commands, tool arguments, patches and messages, but not tools' output. It
// is stored as 4-byte hashes of word runs. The zero value is empty.
type Authored struct {
	runs  map[uint32]bool
	fresh []uint32 // not logged yet
	size  int      // bytes added
}

// All runs of runWords words of a remark must occur in the agent's texts. A shorter remark must occur in a command
// that posts: "done" occurs in any session by chance.
const runWords = 4

// maxRuns limits the hashes of one attempt's texts. Posted texts may add as many. Healthy sessions have up to 4,300
// runs; the longest recorded answer has 8,600.
const maxRuns = 1 << 14

// maxPerRun limits the bytes read per run: 16 MiB in all. A repetitive text adds no runs but takes up to 3 s per MiB.
const maxPerRun = 1 << 10

// posting matches commands and calls that write to GitHub.
var posting = regexp.MustCompile(`(?i)\bgh\s|\bcurl\b|comments?\b|\bgithub\b`)

// postingParts are checked before the regexp: 4 s instead of 46 s per gigabyte. Each match of posting has one of
// them.
var postingParts = []string{"gh", "curl", "comment", "github"}

// Posts reports whether a command may write to GitHub.
func Posts(text string) bool {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(postingParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return false
	}
	return posting.MatchString(text)
}

// Add adds an agent's text; ran means that it was executed. It reports whether the text may have posted something.
// White space, punctuation, quoting and escapes are ignored: posted remarks pass through JSON, a shell and a
// here-document.
func (a *Authored) Add(text string, ran bool) (posts bool) {
	shortest, most := runWords, maxRuns
	if ran && Posts(text) {
		posts, shortest, most = true, 1, 2*maxRuns
	}
	if len(a.runs) >= most || a.size >= most*maxPerRun {
		return posts
	}
	a.size += len(text)
	all := words(text)
	for n := shortest; n <= runWords; n++ {
		a.add(all, n, most)
	}
	return posts
}

func (a *Authored) add(words []string, n, most int) {
	for i := 0; i+n <= len(words) && len(a.runs) < most; i++ {
		a.put(hashOf(words[i : i+n]))
	}
}

func (a *Authored) put(run uint32) {
	if !a.runs[run] {
		a.know(run)
		a.fresh = append(a.fresh, run)
	}
}

func (a *Authored) know(run uint32) {
	if a.runs == nil {
		a.runs = map[uint32]bool{}
	}
	a.runs[run] = true
}

func (a *Authored) Wrote(remark string) bool {
	all := words(remark)
	n := min(len(all), runWords)
	for i := 0; i+n <= len(all); i++ {
		if !a.runs[hashOf(all[i:i+n])] {
			return false
		}
	}
	return n > 0
}

// Parts returns the texts that identify a remark's writer: an edited description's additions, else the whole text.
func (r Remark) Parts() []string {
	if r.Source == policy.FromDescription {
		return Additions(r.Was, r.Text)
	}
	return []string{r.Text}
}

func (r Remark) parts() []Page {
	if r.Source != policy.FromDescription {
		return []Page{r.page()}
	}
	var all []Page
	for _, text := range r.Parts() {
		all = append(all, NewPage(text))
	}
	return all
}

// minCopy is the fewest words of a copy of Pawl's texts: fewer match by chance. A thread with maxOwn runs (32 KiB)
// takes no further text.
const minCopy, maxOwn = 8, 1 << 13

// volatile matches text that copies omit or that changes during the work: tags, link targets, words with digits.
var volatile = regexp.MustCompile(`<[^>]*>|\]\([^)]*\)|\w*\d\w*`)

func lasting(text string) []string {
	text, _ = NewPage(text).seen()
	return words(volatile.ReplaceAllString(text, " "))
}

// AddOwn adds a text that Pawl publishes, with and without its quotations. A run's last bit marks code and
// quotations, which others wrote.
func (a *Authored) AddOwn(text string) {
	if len(a.runs) >= maxOwn {
		return
	}
	var all, others Authored
	page := NewPage(text)
	all.add(lasting(text), runWords, maxRuns)
	all.add(lasting(page.Own()), runWords, maxRuns)
	others.add(lasting(page.quotations()), runWords, maxRuns)
	for _, s := range page.tree().code {
		others.add(lasting(page.body[s.start:s.end]), runWords, maxRuns)
	}
	for _, run := range all.fresh {
		quoted := others.runs[run]
		if run &^= 1; quoted {
			run |= 1
		}
		a.put(run)
	}
}

// copied reports whether a remark copies Pawl's texts on the thread, as bridges do. A copy of only others' words is
// its writer's request.
func copied(r Remark, s Scene) bool {
	var own Authored
	own.Read(s.Own)
	if len(own.runs) == 0 {
		return false
	}
	for _, part := range r.parts() {
		if !own.copies(lasting(uncut(part.Own(), s.Self.Slug))) {
			return false
		}
	}
	return true
}

// copies reports whether all words are in Pawl's texts, and not only in others' words there.
func (a *Authored) copies(all []string) bool {
	if len(all) < minCopy {
		return false
	}
	pawls := false
	for i := 0; i+runWords <= len(all); i++ {
		run := hashOf(all[i:i+runWords]) &^ 1
		switch {
		case a.runs[run|1]: // written by others
		case a.runs[run]:
			pawls = true
		default:
			return false
		}
	}
	return pawls
}

// writer matches a first line that only names the author. A command to Pawl has @ and the name alone.
const writer = `(?i)^[^\w@]*(?:@?%[1]s\[bot\]|%[1]s)\W*(?:(?:bot|app|wrote|commented|said|posted|replied|on|in|at|via|github|#?[\d:/.-]+)\b\W*)*:\W*\n`

// uncut removes the writer's line, and the last word of a truncated copy.
func uncut(text, slug string) string {
	text = regexp.MustCompile(fmt.Sprintf(writer, regexp.QuoteMeta(slug))).ReplaceAllString(text, "")
	for _, mark := range []string{"…", "...", "[…]"} {
		if strings.HasSuffix(text, mark) {
			whole := strings.TrimRight(text, ".…[]() ")
			return whole[:max(0, strings.LastIndexAny(whole, " \n"))]
		}
	}
	return text
}

// Fresh returns the runs that are not logged yet.
func (a *Authored) Fresh() (runs []byte) {
	for _, run := range a.fresh {
		runs = binary.BigEndian.AppendUint32(runs, run)
	}
	return runs
}

func (a *Authored) Logged() { a.fresh = nil }

func (a *Authored) Read(runs []byte) {
	for ; len(runs) >= 4; runs = runs[4:] {
		a.know(binary.BigEndian.Uint32(runs))
	}
}

func hashOf(words []string) uint32 {
	h := fnv.New32a()
	for _, w := range words {
		h.Write([]byte(w))
		h.Write([]byte{' '})
	}
	return h.Sum32()
}

// words splits a text into lower-case runs of letters and digits.
func words(text string) []string {
	if strings.Contains(text, `\`) { // faster than always replacing
		text = escapes.ReplaceAllStringFunc(text, unescaped)
	}
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// escapes matches escapes of JSON and shells with any number of backslashes. A surrogate pair is one character.
var escapes = regexp.MustCompile(`\\+(?:[nrt]|(?:u([dD][89abAB][0-9a-fA-F]{2})\\+)?u([0-9a-fA-F]{4}))?`)

// unescaped returns an escape's character, else a space.
func unescaped(escape string) string {
	m := escapes.FindStringSubmatch(escape)
	if m[2] == "" {
		return " "
	}
	first, _ := strconv.ParseUint(m[1], 16, 16) // 0 for none
	last, _ := strconv.ParseUint(m[2], 16, 16)
	if utf16.IsSurrogate(rune(last)) {
		return string(utf16.DecodeRune(rune(first), rune(last)))
	}
	return string(rune(last))
}

// WroteAll reports whether agents wrote every part of a remark.
func WroteAll(parts []string, agents ...Authored) bool {
	foreign := func(part string) bool {
		return !slices.ContainsFunc(agents, func(a Authored) bool { return a.Wrote(part) })
	}
	return len(parts) > 0 && !slices.ContainsFunc(parts, foreign)
}
