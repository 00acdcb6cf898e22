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

// Authored stands for what an agent itself wrote while it worked: its commands, the arguments of its tools,
// its patches and messages. What tools printed is none of it, so a person's comment that the agent merely
// read stays the person's. Texts are kept as hashes of their runs of words, 4 bytes each, so that a thread's
// log can hold them and every node can ask. The zero value is of an agent that wrote nothing.
type Authored struct {
	runs  map[uint32]bool
	fresh []uint32 // those that are not logged yet
	size  int      // of the texts that were looked at, in bytes
}

// runWords is how many words of a remark in a row must stand in the agent's texts, wherever in the remark. A
// remark of fewer words must stand in a command that posts: "done" or "LGTM" stands in any session by chance.
const runWords = 4

// maxRuns bounds what is kept of one attempt's texts, except of what it posts, which has as much room again.
// Recorded healthy sessions have up to 4,300 runs, and the longest answer that was recorded 8,600.
const maxRuns = 1 << 14

// maxPerRun bounds the texts that are looked at, in bytes for each run that may be
// kept: 16 MiB. A text that only repeats itself fills nothing, but takes up to 3 s a MiB.
const maxPerRun = 1 << 10

// posting matches commands and calls that write to GitHub.
var posting = regexp.MustCompile(`(?i)\bgh\s|\bcurl\b|comments?\b|\bgithub\b`)

// postingParts are what each match of posting has one of, in lower case. They are
// looked for first: a gigabyte of output took 46 s with the regexp alone, and takes 4 s.
var postingParts = []string{"gh", "curl", "comment", "github"}

// Posts reports whether a text that is executed may write to GitHub.
func Posts(text string) bool {
	lower := strings.ToLower(text)
	if !slices.ContainsFunc(postingParts, func(part string) bool { return strings.Contains(lower, part) }) {
		return false
	}
	return posting.MatchString(text)
}

// Add takes a text of the agent in; ran says that it was executed and not merely said.
// It reports whether the text may have posted something.
//
// White space, punctuation, quoting and escapes are ignored, because a remark goes
// through JSON, a shell and a here-document before it is posted.
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

// put takes in a run, which is to be logged if it is a new one.
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

// Parts are what of a remark must be somebody's for the remark to be theirs: of an
// edited description only what was added.
func (r Remark) Parts() []string {
	if r.Source == policy.FromDescription {
		return Additions(r.Was, r.Text)
	}
	return []string{r.Text}
}

// parts are Parts as pages; the text itself is parsed once.
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

// minCopy is how many words a copy of Pawl's texts has at least: fewer stand in them by
// chance. maxOwn is how many runs of a thread's are kept, 32 KiB, or one text more.
const minCopy, maxOwn = 8, 1 << 13

// volatile is what a reader does not copy of a text of Pawl, and what changes in it as
// work goes on: tags, addresses of links, and words with digits in them.
var volatile = regexp.MustCompile(`<[^>]*>|\]\([^)]*\)|\w*\d\w*`)

func lasting(text string) []string {
	text, _ = NewPage(text).seen()
	return words(volatile.ReplaceAllString(text, " "))
}

// AddOwn takes in a text that Pawl itself publishes. What stands in code there, others
// said: the last bit of a run tells.
func (a *Authored) AddOwn(text string) {
	if len(a.runs) >= maxOwn {
		return
	}
	var all, others Authored
	all.add(lasting(text), runWords, maxRuns)
	page := NewPage(text)
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

// copied reports whether a remark is a copy of what Pawl published on the thread, as a
// bridge makes it. A copy of nothing but what others said there is its writer's wish.
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

// copies reports whether words are a copy of Pawl's texts, and not only of what others said there.
func (a *Authored) copies(all []string) bool {
	if len(all) < minCopy {
		return false
	}
	pawls := false
	for i := 0; i+runWords <= len(all); i++ {
		run := hashOf(all[i:i+runWords]) &^ 1
		switch {
		case a.runs[run|1]: // others said it
		case a.runs[run]:
			pawls = true
		default:
			return false
		}
	}
	return pawls
}

// writer matches a first line that names who wrote what follows, and says no more; an
// order to Pawl begins with @ and its name alone.
const writer = `(?i)^[^\w@]*(?:@?%[1]s\[bot\]|%[1]s)\W*(?:(?:bot|app|wrote|commented|said|posted|replied|on|in|at|via|github|#?[\d:/.-]+)\b\W*)*:\W*\n`

// uncut is a copy without such a line, and without the word within which its end was cut off.
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

// Fresh are the runs that are not logged yet.
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

// words are the words of a text in lower case. A word is a run of letters and digits;
// everything else separates words, escapes other than \uXXXX included.
func words(text string) []string {
	if strings.Contains(text, `\`) { // which is asked more quickly than replaced
		text = escapes.ReplaceAllStringFunc(text, unescaped)
	}
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// escapes are those of JSON and of shells, however many backslashes the layers of
// quoting put before them. A character may be written as a pair of surrogates.
var escapes = regexp.MustCompile(`\\+(?:[nrt]|(?:u([dD][89abAB][0-9a-fA-F]{2})\\+)?u([0-9a-fA-F]{4}))?`)

// unescaped is the character that an escape names, a space for what is none.
func unescaped(escape string) string {
	m := escapes.FindStringSubmatch(escape)
	if m[2] == "" {
		return " "
	}
	first, _ := strconv.ParseUint(m[1], 16, 16) // 0 where there is none
	last, _ := strconv.ParseUint(m[2], 16, 16)
	if utf16.IsSurrogate(rune(last)) {
		return string(utf16.DecodeRune(rune(first), rune(last)))
	}
	return string(rune(last))
}

// WroteAll reports whether each part of a remark consists of what one of the agents
// wrote: of an edited description only what was added need be theirs.
func WroteAll(parts []string, agents ...Authored) bool {
	foreign := func(part string) bool {
		return !slices.ContainsFunc(agents, func(a Authored) bool { return a.Wrote(part) })
	}
	return len(parts) > 0 && !slices.ContainsFunc(parts, foreign)
}
