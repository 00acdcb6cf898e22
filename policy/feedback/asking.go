package feedback

import (
	"regexp"
	"slices"
	"strings"
)

// courtesy are the words of thanks and of bare approvals. A remark of these alone asks
// for nothing; any other word may ask for something.
const courtesy = " thanks thank thx ty cheers you u so very much a lot all team lgtm looks look good great nice one fine perfect awesome excellent cool ok okay" +
	" approved approve ship merge it this that to me by well done job work works stuff is are s as the appreciated "

var (
	// joining matches a question, and words after which thanks may go on with a request.
	joining  = regexp.MustCompile(`(?i)\?|\b(?:and|but|or|then|now|also|please|can|could|would|should)\b`)
	emoji    = regexp.MustCompile(`:[a-z0-9_+-]+:|\+1\b|@[\w-]+`) // and mentions
	thanking = regexp.MustCompile(`(?i)\b(?:thanks|thank you|thx|ty)( +\w+){0,3}? +for( +[\w'-]+){1,5}`)
)

// Own is what the writer of a text says: what a reader sees of it, without quotations.
func Own(text string) string {
	text = Visible(text)
	if !strings.ContainsAny(text, "<>:-") { // which every quotation has
		return strings.TrimSpace(text)
	}
	var own []string
	for _, l := range readLines(text) {
		if l.kind != quotedLine && l.kind != mailLine && !strings.HasPrefix(strings.TrimSpace(l.text), ">") { // as in a quoted block of code
			own = append(own, l.text)
		}
	}
	return strings.TrimSpace(strings.Join(own, "\n"))
}

// courteous reports whether somebody's own words are thanks, a bare approval or emoji:
// no question and no code, and nothing but words of courtesy and what thanks are for.
func courteous(own string) bool {
	if joining.MatchString(own) || len(readPage(own).code) > 0 {
		return false
	}
	own = thanking.ReplaceAllString(emoji.ReplaceAllString(own, " "), " ")
	return !slices.ContainsFunc(words(own), func(w string) bool { return !strings.Contains(courtesy, " "+w+" ") })
}
