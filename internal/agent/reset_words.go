package agent

import (
	"regexp"
	"strings"
	"time"
)

// The words that stand for a time of day or an amount, and the East Asian forms
// of a clock time.
var (
	oneOf      = regexp.MustCompile(`(?i)\ban? (minute|hour|day|week)\b`)
	midday     = regexp.MustCompile(`(?i)\b(midnight|noon)\b`)
	eastClock  = regexp.MustCompile(`(\d{1,2})\s?[時时시]\s?(\d{1,2})\s?[分분]?`)
	eastBefore = regexp.MustCompile(`(오전|午前|上午|오후|午後|下午)\s?(\d{1,2}:\d{2}(?::\d{2})?)`)
)

// plainForm rewrites the forms of a time that are not digits with AM or PM into
// such, so that one grammar reads them all.
func plainForm(text string) string {
	text = plainSpaces.Replace(text)
	text = oneOf.ReplaceAllString(text, "1 $1")
	text = midday.ReplaceAllStringFunc(text, func(word string) string {
		if strings.EqualFold(word, "noon") {
			return "12:00 PM"
		}
		return "12:00 AM"
	})
	text = eastClock.ReplaceAllString(text, "$1:$2")
	return eastBefore.ReplaceAllStringFunc(text, func(s string) string {
		m := eastBefore.FindStringSubmatch(s)
		switch m[1] {
		case "오전", "午前", "上午":
			return m[2] + " AM"
		}
		return m[2] + " PM"
	})
}

// monthNames are the first letters of the months in English, German, French,
// Italian, Portuguese, Spanish, Dutch, Swedish, Polish, Russian and Turkish.
// French June and July need four.
var monthNames = [...]string{
	time.January:   "jan ene gen jän янв sty oca",
	time.February:  "feb fev fév фев lut şub",
	time.March:     "mar mär mrz mrt мар",
	time.April:     "apr abr avr апр kwi nis",
	time.May:       "may mai mag mei maj май мая",
	time.June:      "jun giu juin июн cze haz",
	time.July:      "jul lug juil июл lip tem",
	time.August:    "aug ago aoû aou авг sie ağu",
	time.September: "sep set сен wrz eyl",
	time.October:   "oct okt out ott окт paź eki",
	time.November:  "nov ноя lis kas",
	time.December:  "dec dez déc dic дек gru ara",
}

// monthOf knows a month by its first letters; 0 where it does not.
func monthOf(name string) time.Month {
	r := []rune(strings.ToLower(name))
	for _, n := range []int{4, 3} {
		if len(r) < n {
			continue
		}
		for month, names := range monthNames {
			for known := range strings.FieldsSeq(names) {
				if known == string(r[:n]) {
					return time.Month(month)
				}
			}
		}
	}
	return 0
}
