package limit

import (
	"regexp"
	"strings"
)

var (
	// label matches error prefixes of CLIs and SDKs.
	label = regexp.MustCompile(`(?i)^[^\pL\pN{"'` + "`" + `\[]*(?:\[?api error:?\s*|(?:fatal|warning|codex|claude|[\w.]*error|[\w.]*exception)\s*:\s*|error code: |unexpected status |failed after \d+ attempts\. last error: |` +
		`please run /login · |failed to authenticate\. |stream disconnected before completion: |exceeded retry limit, last status: )*`)
	// ofAPI matches labels that only precede a provider's answer.
	ofAPI = regexp.MustCompile(`(?i)api error|last error:|last status:|stream disconnected before|^\W*(?:http )?[45]\d\d\b`)
	// failedCall matches a failed call with its status, and nothing else.
	failedCall = regexp.MustCompile(`(?i)^[\w .:-]{0,40}\b(?:failed|returned|responded|answered|error)\b[\w :-]{0,30}\b[45]\d\d\b[\w :-]{0,40}[.!]?$`)
	// errorBody matches a provider's answer printed unchanged.
	errorBody = regexp.MustCompile(`(?i)^(?:too many requests\s*:\s*)?(?:\d{3} )?\[?\{\s*"(?:type"\s*:\s*"error"\s*,\s*"error|error)"\s*:\s*\{`)
	// talk matches words that show that a line only talks about limits, code or tests.
	talk = regexp.MustCompile(`\b(?:i|i've|i'll|i'd|should|would|could|when|if|where|how|whether|means?|tests?|tested|pass(?:es|ed)?|limiter|expect\w*|assert\w*|want|wanted|got|func|config\w*|handl\w+|` +
		`implement\w*|add(?:s|ed)|fix(?:es|ed)|rais(?:es|ed)|chang(?:es|ed)|panic|shown|grep|todo|fixme|warn(?:s|ed)?|returns?|is returned)\b|\w\.\w+:\d+|\(\)|[{}<>]|[:=]=`)
	// opening matches the few words that may begin a refusal.
	opening = regexp.MustCompile(`^\s*(?:[\pL\w.'%/-]+[,:]?\s+){0,6}$`)
	// tails matches the text after a refusal: its sentence's end, or place, time and advice.
	tails = regexp.MustCompile(`^[^\s.,;:!|·∙•()\[\-–—]*(?:\s(?:limits?|caps?|quota|credits?|errors?|has|have|been|is|was|reached|exceeded|exhausted|used up|too low|low|required|ceiling|thresholds?))*(?:\s*(?:$|[.,;:!|·∙•()\[–—]|-\s|resets?\b|(?:for|on|of|in|by|at|to|due|because|with|until|please|try|and|or|right now|available|usage|load|left|our|that restricts|set|too many|quickly|requests?)\b))`)
)

// maxLineText limits a refusal's line, in bytes. Real ones have up to 600.
const maxLineText = 1024

// isLine reports whether a line of plain output is a refusal. Apart from labels, it must begin with the refusal. The
// sentence must then end or continue to the reset.
func (e Evidence) isLine() bool {
	line := strings.TrimSpace(e.Message)
	if len(line) > maxLineText {
		return false
	}
	marks := label.FindString(line)
	rest := line[len(marks):]
	if errorBody.MatchString(rest) {
		return true
	}
	if ofAPI.MatchString(marks) {
		return true
	}
	if ofAPI.MatchString(rest) {
		return true
	}
	if strings.ContainsAny(rest, "\"`") {
		return false
	}
	if failedCall.MatchString(web.ReplaceAllString(rest, "")) {
		return true
	}
	first := sentences.Split(plainWords(rest), 2)[0]
	if talk.MatchString(plainWords(marks) + first) {
		return false
	}
	for _, form := range []*regexp.Regexp{moneySpent, boundSpent, boundAlone, rateWords, busyWords, lackWords} {
		if opens(first, form) {
			return true
		}
	}
	return false
}

// opens reports whether a sentence begins with a form's match, apart from opening words, and ends or continues like a
// refusal.
func opens(first string, form *regexp.Regexp) bool {
	at := form.FindStringIndex(first)
	if at == nil {
		return false
	}
	if !opening.MatchString(strings.TrimSpace(first[:at[0]]) + " ") {
		return false
	}
	return tails.MatchString(first[at[1]:])
}

// alone matches a CLI's error that replaces an answer: one line that begins with an error's label.
var alone = regexp.MustCompile(`(?i)^\s*(?:[^\pL\pN{"'` + "`" + `\[]*(?:\[api error|api error|api call failed|(?:request|api|http|fatal|provider|llm|model)?\s?error|\w+error|fatal|failed to authenticate|please run /login)\b\s*[:·(\d]|\{\s*"(?:type"\s*:\s*"error"|error"\s*:)|\[?\s*(?:http )?(?:error )?[45]\d\d\b)`)

// Instead returns the meaning of a text that replaces an answer, and whether the text is a provider's error. The text
// must begin with a known error and end with it.
func Instead(e Evidence) (Reading, bool) {
	text := strings.TrimSpace(e.Message)
	if len(text) > maxLineText {
		return Reading{}, false
	}
	if strings.Count(text, "\n") > maxErrorLines {
		return Reading{}, false
	}
	e.Message = text
	if !alone.MatchString(text) {
		e.Seen = Plain
		r := Read(e)
		return r, r.Kind.IsLimit()
	}
	prose := !printedBody.MatchString(text) && talk.MatchString(plainWords(text))
	e.Seen = Stream
	r := Read(e)
	return r, r.Kind != "" && !prose
}

// printedBody matches a provider's answer in a text: JSON, Python's form of it, or a page.
var printedBody = regexp.MustCompile(bodyStart.String() + `|\{\s*'|` + markup.String())

// maxErrorLines limits the line breaks of an error that replaces an answer.
const maxErrorLines = 3
