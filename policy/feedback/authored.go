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

// Authored is what an agent itself wrote while it worked: its commands, tool arguments, patches and messages. It
// leaves out tools' output, so a user's comment that the agent read stays the user's. Texts are kept as hashes of
// word runs, 4 bytes each, so that a thread's log can hold them and every node can check. The zero value wrote
// nothing.
type Authored struct {
	runs  map[uint32]bool
	fresh []uint32 // not logged yet
	size  int      // bytes of the texts added
}

// runWords is how many consecutive words of a remark must occur in the agent's texts, for every part of the remark.
// A shorter remark must occur in a command that posts: "done" or "LGTM" occurs in any session by chance.
const runWords = 4

// maxRuns limits the hashes of one attempt's texts; posted texts have the same limit again. Recorded healthy
// sessions have up to 4,300 runs, the longest recorded answer 8,600.
const maxRuns = 1 << 14

// maxPerRun limits the texts that are read, in bytes per run: 16 MiB. A repetitive text fills nothing, but takes up
// to 3 s per MiB.
const maxPerRun = 1 << 10

// posting matches commands and calls that write to GitHub.
var posting = regexp.MustCompile(`(?i)\bgh\s|\bcurl\b|comments?\b|\bgithub\b`)

// postingParts are lower-case words; each match of posting has one. They are checked first: a gigabyte
// of output took 46 s with the regexp alone, and takes 4 s.
var postingParts = []string{"gh", "curl", "comment", "github"}

// Posts reports whether an executed text may write to GitHub.
func Posts(text string) bool {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(postingParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return false
	}
	return posting.MatchString(text)
}

// Add adds a text of the agent; ran says that it was executed, not only said. It reports whether the text may have
// posted something.
//
// White space, punctuation, quoting and escapes are ignored, because a remark passes through JSON, a shell and a
// here-document before it is posted.
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

// Parts are the texts that must match for a remark to be an agent's: of an edited description, the additions.
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

// minCopy is the least number of words in a copy of Pawl's texts: fewer match by chance. maxOwn limits a thread's
// runs, 32 KiB, or one more text.
const minCopy, maxOwn = 8, 1 << 13

// volatile is what copies of Pawl's texts omit and what changes while work goes on: tags, link targets, and words
// with digits.
var volatile = regexp.MustCompile(`<[^>]*>|\]\([^)]*\)|\w*\d\w*`)

func lasting(text string) []string {
	text, _ = NewPage(text).seen()
	return words(volatile.ReplaceAllString(text, " "))
}

// AddOwn adds a text that Pawl publishes, whole and without its quotations: a copy is judged without them. The last bit
// of a run marks code and quotations, which others wrote.
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

// copied reports whether a remark copies Pawl's texts on the thread, as bridges do. A copy of only others' words
// there is its writer's request.
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

// copies reports whether words copy Pawl's texts, and not only others' words in them.
func (a *Authored) copies(all []string) bool {
	if len(all) < minCopy {
		return false
	}
	pawls := false
	for i := 0; i+runWords <= len(all); i++ {
		run := hashOf(all[i:i+runWords]) &^ 1
		switch {
		case a.runs[run|1]: // others wrote it
		case a.runs[run]:
			pawls = true
		default:
			return false
		}
	}
	return pawls
}

// writer matches a first line that only names the author of the rest. A command to Pawl begins with @ and its name
// alone.
const writer = `(?i)^[^\w@]*(?:@?%[1]s\[bot\]|%[1]s)\W*(?:(?:bot|app|wrote|commented|said|posted|replied|on|in|at|via|github|#?[\d:/.-]+)\b\W*)*:\W*\n`

// uncut is a copy without such a line, and without the last word if its end was cut off.
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

// words splits a text into lower-case words: runs of letters and digits. Everything else separates words, also
// escapes other than \uXXXX.
func words(text string) []string {
	if strings.Contains(text, `\`) { // checking is faster than replacing
		text = escapes.ReplaceAllStringFunc(text, unescaped)
	}
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// escapes are the escapes of JSON and of shells, with any number of backslashes from nested quoting. A surrogate
// pair is one character.
var escapes = regexp.MustCompile(`\\+(?:[nrt]|(?:u([dD][89abAB][0-9a-fA-F]{2})\\+)?u([0-9a-fA-F]{4}))?`)

// unescaped is the character that an escape names, else a space.
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

// WroteAll reports whether one of the agents wrote every part of a remark.
func WroteAll(parts []string, agents ...Authored) bool {
	foreign := func(part string) bool {
		return !slices.ContainsFunc(agents, func(a Authored) bool { return a.Wrote(part) })
	}
	return len(parts) > 0 && !slices.ContainsFunc(parts, foreign)
}
