package feedback

import (
	"cmp"
	"math"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/pawlbot/pawl/policy"
)

// courtesy are the words of thanks and of bare approvals. A remark of these alone asks
// for nothing; any other word may ask for something.
const courtesy = " thanks thank thx ty cheers you u so very much a lot all team lgtm looks look good great nice one fine perfect awesome excellent cool ok okay" +
	" approved approve ship merge it this that to me by well done job work works stuff is are s as the appreciated "

var (
	// asking matches a question, and words with which thanks go on with a request or complain.
	asking = regexp.MustCompile(`(?i)\?|n't\b|\b(?:and|but|or|then|now|also|please|can|could|would|should|must|needs?|only|half|not|nothing|never|except|instead|still|` +
		`if|once|after|before|until|when|advance|(?:break|broke|fail|miss|wrong)\w*)\b`)
	emoji = regexp.MustCompile(`:[a-z0-9_+-]+:|\+1\b|@[\w-]+`) // and mentions
	// thanking matches what somebody is thanked for: up to two words behind an
	// article or behind "fixing" and the like.
	thanking = regexp.MustCompile(`(?im)\b(?:thanks|thank you|thx|ty)(?: +(?:so|very|much|a|lot|again|all|everyone))* +for +(?:(?:the|this|that|your|all|such|a)(?: +[\w'-]+){0,2}|\w+ing(?: +[\w'-]+){0,2})(?:[.!]|[^\pL\pN\n]*$)`)
	alert    = regexp.MustCompile(`(?m)^ {0,3}>\s*\[!\w+\]`) // GitHub's coloured boxes, which are no quotations
)

// Gist is the words of a text, sorted, without quotations: programs quote and shuffle what they say again.
func Gist(text string) []string {
	all := words(NewPage(text).Own())
	slices.Sort(all)
	return slices.Compact(all)
}

// Numbered reports whether a word holds a digit, as counters, times, hashes and the keys of tasks do.
func Numbered(word string) bool { return strings.ContainsFunc(word, unicode.IsDigit) }

// courteous reports whether somebody's own words are thanks, a bare approval or emoji:
// no question and no code, and nothing but words of courtesy and what thanks are for.
func courteous(own string) bool {
	if asking.MatchString(own) || NewPage(own).hasCode() {
		return false
	}
	own = thanking.ReplaceAllString(emoji.ReplaceAllString(own, " "), " ")
	return !slices.ContainsFunc(words(own), func(w string) bool { return !strings.Contains(courtesy, " "+w+" ") })
}

// How much a remark of a review matters to who made it; 0 is no remark of a review.
const (
	Minor    = 1 // it may stay as it is
	Ordinary = 2 // nothing is said of it
	Blocking = 3 // it must be dealt with before a merge
)

// marks are the words that remarks begin with to say how much they matter: those of Conventional Comments
// (https://conventionalcomments.org), and what review bots print: P0 to P3 (Codex, Greptile), critical to low (Gemini
// Code Assist, Cursor Bugbot), critical to trivial (CodeRabbit), important and nit (Claude), must, should, nit (Copilot).
var marks = [...]string{
	Minor:    " p3 p4 low minor trivial nit nitpick optional suggestion non-blocking if-minor praise thought note info ",
	Ordinary: " p2 medium moderate should issue todo question ",
	Blocking: " p0 p1 blocking blocker critical severe high major important must must-fix ",
}

var (
	// htmlTag matches a tag, of which people may see the text of an image.
	htmlTag = regexp.MustCompile(`<[a-z][^>]*\balt=["']([^"']*)["'][^>]*>|</?[a-z][^>]*>`)
	// mark matches a word at the beginning of a line, whatever decorates it, that is set off from what follows:
	// P1: x, **nit** x, ![P1 Badge](x), issue (blocking): x.
	mark = regexp.MustCompile(`^[^\pL\pN]*(?:(?:severity|priority|security)[^\pL\pN]+)?([\pL\pN-]+)(?: (?:severity|priority|badge))?(?: ?\(([^()]*)\))?(?:\s*$|[^\pL\pN\s('’-]+|\s+[-–—])(.*)`)
)

// Severity says how much a remark matters to the reviewer who made it. A review that requests changes blocks; else the
// gravest mark counts. A bot's comment on the whole is a remark of a review, a person's is none.
func Severity(r Remark) int {
	if !reviews(r) {
		return 0
	}
	if r.State == "changes_requested" {
		return Blocking
	}
	gravest := 0
	for _, line := range r.page().lines() {
		if line.kind != plainLine {
			continue
		}
		for cell := range strings.SplitSeq(htmlTag.ReplaceAllString(strings.ToLower(line.text), "[$1]"), "|") {
			gravest = max(gravest, markedIn(cell))
		}
	}
	return cmp.Or(gravest, Ordinary)
}

// reviews reports whether a remark is one of a review. A bot's comment on the whole is, a user's is not.
func reviews(r Remark) bool {
	switch r.Source {
	case policy.FromReview, policy.FromReviewComment:
		return true
	case policy.FromComment:
		return r.Actor.Bot()
	default:
		return false
	}
}

// markedIn is what the mark says that a cell of a table, or a line, begins with; 0 for nothing, and for a count of none
// ("critical: 0").
func markedIn(cell string) (severity int) {
	m := mark.FindStringSubmatch(cell)
	if m == nil || strings.Trim(m[3], " *_.") == "0" {
		return 0
	}
	return marked(m[1] + "," + m[2])
}

// marked is what the last word of a mark and its decorations says that says anything; 0 for nothing.
func marked(words string) (severity int) {
	for word := range strings.SplitSeq(words, ",") {
		for s, list := range marks {
			if strings.Contains(list, " "+strings.TrimSpace(word)+" ") {
				severity = s
			}
		}
	}
	return severity
}

const (
	// inARow is how many remarks tell a program. It is our choice; docs/verdicts.md has how often people are mistaken.
	inARow = 6
	// even is how far a gap between two of them may be from a whole multiple of the smallest one, in parts of the
	// smallest: what looks every five minutes whether it has something to say says it after five, ten or fifteen.
	even = 0.02
	// coarse is the least gap in seconds that can be equal to others, and gross the least one that can be a multiple.
	// GitHub reports whole seconds, so smaller gaps agree by chance.
	coarse, gross = 5, 30
)

// Moment is when somebody said something that the thread did not hold yet. Fresh says that it held a new word and not
// only new numbers, or the words of earlier remarks in another combination.
type Moment struct {
	At    time.Time
	Fresh bool
}

// Mechanical reports whether the last of somebody's moments, oldest first, is a program's. It is one of six in a row
// without a fresh word, or at even intervals. Earlier moments stay what they were.
func Mechanical(said []Moment) bool {
	if len(said) < inARow {
		return false
	}
	row := said[len(said)-inARow:]
	fresh := func(m Moment) bool { return m.Fresh }
	return evenly(row) || !slices.ContainsFunc(row, fresh)
}

// evenly reports whether all gaps are equal, or whole multiples of the smallest.
func evenly(row []Moment) bool {
	var gaps []float64
	for i := range row[1:] {
		gaps = append(gaps, row[i+1].At.Sub(row[i].At).Seconds())
	}
	least := slices.Min(gaps)
	if slices.Max(gaps)-least <= 1 {
		return least >= coarse
	}
	if least <= gross {
		return false
	}
	uneven := func(g float64) bool { return math.Abs(g/least-math.Round(g/least)) > even }
	return !slices.ContainsFunc(gaps, uneven)
}
