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
	// asking matches a question, and words with which thanks go on with a request or complain.
	asking = regexp.MustCompile(`(?i)\?|n't\b|\b(?:and|but|or|then|now|also|please|can|could|would|should|must|needs?|only|half|not|nothing|never|except|instead|still|` +
		`if|once|after|before|until|when|advance|(?:break|broke|fail|miss|wrong)\w*)\b`)
	emoji = regexp.MustCompile(`:[a-z0-9_+-]+:|\+1\b|@[\w-]+`) // and mentions
	// thanking matches what somebody is thanked for: up to two words behind an
	// article or behind "fixing" and the like.
	thanking = regexp.MustCompile(`(?im)\b(?:thanks|thank you|thx|ty)(?: +(?:so|very|much|a|lot|again|all|everyone))* +for +(?:(?:the|this|that|your|all|such|a)(?: +[\w'-]+){0,2}|\w+ing(?: +[\w'-]+){0,2})(?:[.!]|[^\pL\pN\n]*$)`)
	alert    = regexp.MustCompile(`(?m)^ {0,3}>\s*\[!\w+\]`) // GitHub's coloured boxes, which are no quotations
)

// Own is what the writer of a text says: what a reader sees of it, without quotations.
func Own(text string) string { return Unquoted(Visible(text)) }

// Unquoted is a text without quotations, and without the quoted part of a mail.
func Unquoted(text string) string {
	text = unixLines(text)
	if !strings.ContainsAny(text, "<>:-") || alert.MatchString(text) { // every quotation has one of these
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
	if asking.MatchString(own) || len(readPage(own).code) > 0 {
		return false
	}
	own = thanking.ReplaceAllString(emoji.ReplaceAllString(own, " "), " ")
	return !slices.ContainsFunc(words(own), func(w string) bool { return !strings.Contains(courtesy, " "+w+" ") })
}
