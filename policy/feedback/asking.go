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

// courtesy lists words of thanks and approval, which ask for nothing.
const courtesy = " thanks thank thx ty cheers you u so very much a lot all team lgtm looks look good great nice one fine perfect awesome excellent cool ok okay" +
	" approved approve ship merge it this that to me by well done job work works stuff is are s as the appreciated "

var (
	// asking matches questions, and words that follow thanks with a request or a complaint.
	asking = regexp.MustCompile(`(?i)\?|n't\b|\b(?:and|but|or|then|now|also|please|can|could|would|should|must|needs?|only|half|not|nothing|never|except|instead|still|` +
		`if|once|after|before|until|when|advance|(?:break|broke|fail|miss|wrong)\w*)\b`)
	emoji = regexp.MustCompile(`:[a-z0-9_+-]+:|\+1\b|@[\w-]+`) // or mentions
	// thanking matches the object of thanks: up to two words after an article or after "fixing" and the like.
	thanking = regexp.MustCompile(`(?im)\b(?:thanks|thank you|thx|ty)(?: +(?:so|very|much|a|lot|again|all|everyone))* +for +(?:(?:the|this|that|your|all|such|a)(?: +[\w'-]+){0,2}|\w+ing(?: +[\w'-]+){0,2})(?:[.!]|[^\pL\pN\n]*$)`)
	alert    = regexp.MustCompile(`(?m)^ {0,3}>\s*\[!\w+\]`) // GitHub's alerts are not quotations
)

// Gist returns a text's sorted words without quotations.
func Gist(text string) []string {
	all := words(NewPage(text).Own())
	slices.Sort(all)
	return slices.Compact(all)
}

// Numbered reports whether a word has a digit: counters, times, hashes, task keys.
func Numbered(word string) bool { return strings.ContainsFunc(word, unicode.IsDigit) }

// courteous reports whether a user's own words are only thanks, approval or emoji, without a question or code.
func courteous(own string) bool {
	if asking.MatchString(own) || NewPage(own).hasCode() {
		return false
	}
	own = thanking.ReplaceAllString(emoji.ReplaceAllString(own, " "), " ")
	return !slices.ContainsFunc(words(own), func(w string) bool { return !strings.Contains(courtesy, " "+w+" ") })
}

// Severity of a review remark; 0 for other remarks.
const (
	Minor    = 1 // optional
	Ordinary = 2 // unmarked
	Blocking = 3 // must be handled before a merge
)

// marks lists first words of remarks that state a severity: Conventional Comments (https://conventionalcomments.org),
// P0 to P3 (Codex, Greptile), critical to low (Gemini Code Assist, Cursor Bugbot), critical to trivial (CodeRabbit),
// important and nit (Claude), must, should, nit (Copilot).
var marks = [...]string{
	Minor:    " p3 p4 low minor trivial nit nitpick optional suggestion non-blocking if-minor praise thought note info ",
	Ordinary: " p2 medium moderate should issue todo question ",
	Blocking: " p0 p1 blocking blocker critical severe high major important must must-fix ",
}

var (
	// htmlTag matches a tag; its group is an image's alternative text.
	htmlTag = regexp.MustCompile(`<[a-z][^>]*\balt=["']([^"']*)["'][^>]*>|</?[a-z][^>]*>`)
	// mark matches a decorated word at the start of a line: P1: x, **nit** x, ![P1 Badge](x), issue (blocking): x.
	mark = regexp.MustCompile(`^[^\pL\pN]*(?:(?:severity|priority|security)[^\pL\pN]+)?([\pL\pN-]+)(?: (?:severity|priority|badge))?(?: ?\(([^()]*)\))?(?:\s*$|[^\pL\pN\s('’-]+|\s+[-–—])(.*)`)
)

// Severity returns a review remark's gravest mark. A review that requests changes blocks. A bot's general comment
// counts as a review remark; a user's does not.
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

// reviews reports whether a remark belongs to a review.
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

// markedIn returns the severity marked at the start of a line or table cell; 0 for none or for a zero count
// ("critical: 0").
func markedIn(cell string) (severity int) {
	m := mark.FindStringSubmatch(cell)
	if m == nil || strings.Trim(m[3], " *_.") == "0" {
		return 0
	}
	return marked(m[1] + "," + m[2])
}

// marked returns the severity of the last known word of a mark; 0 for none.
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
	// inARow remarks identify a program (our choice; error rate for people: docs/verdicts.md).
	inARow = 6
	// even is how far a gap may be from a whole multiple of the smallest gap, as a share of the smallest. A program
	// that polls every five minutes writes after five, ten or fifteen.
	even = 0.02
	// Seconds. Equal gaps must last at least coarse; multiples need a smallest gap above gross. GitHub reports whole
	// seconds, so smaller gaps agree by chance.
	coarse, gross = 5, 30
)

// Moment is the time of a new text on the thread. Fresh means that it had a new word, not only new numbers.
type Moment struct {
	At    time.Time
	Fresh bool
}

// Mechanical reports whether a program wrote the last of a writer's moments (oldest first): inARow moments without a
// fresh word, or at even intervals.
func Mechanical(moments []Moment) bool {
	if len(moments) < inARow {
		return false
	}
	row := moments[len(moments)-inARow:]
	fresh := func(m Moment) bool { return m.Fresh }
	return evenly(row) || !slices.ContainsFunc(row, fresh)
}

// evenly reports whether all gaps are equal or whole multiples of the smallest.
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
