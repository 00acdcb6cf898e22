package agent

import "bytes"

// mentionMarks are beginnings of which every text about limits has one, and what
// tells by the rest. They begin with letters as rare as possible, so that large
// tool output is searched at nearly the speed of memory.
var mentionMarks = []struct {
	mark []byte
	// about reports whether what stands around the mark, at text[i], is about a
	// limit.
	about func(text []byte, i int) bool
}{
	{[]byte("qu"), aboutQuotaOrRequests},
	{[]byte("Qu"), aboutQuotaOrRequests},
	{[]byte("mi"), aboutLimit},
	{[]byte("f "), aboutCredits},
}

// quotesLimit reports whether text mentions a limit, wherever it stands. It is
// loose: it only counts mentions. The test holds the regexp that defines it.
func quotesLimit(text []byte) bool {
	for _, m := range mentionMarks {
		for i := 0; ; i++ {
			n := bytes.Index(text[i:], m.mark)
			if n < 0 {
				break
			}
			i += n
			if m.about(text, i) {
				return true
			}
		}
	}
	return false
}

// limited are the things that have limits.
var limited = []string{"usage", "rate", "session", "weekly", "daily", "monthly", "spend", "spending", "hour", "opus", "request"}

// aboutLimit looks around the m of "limit": "usage limit", "hit your weekly
// limit", "limit_reached".
func aboutLimit(text []byte, i int) bool {
	before, found := cutEnd(text[:i], "li")
	if !found || !begins(text[i:], "mit") {
		return false
	}
	after := text[i+len("mit"):]
	if begins(after, "reached") || len(after) > 0 && (after[0] == ' ' || after[0] == '_') && begins(after[1:], "reached") {
		return true
	}
	if _, yes := cutEnd(before, "hit your "); yes {
		return true
	}
	if n := len(before); n > 0 && before[n-1] == ' ' {
		back := n - 1
		for back > 0 && wordByte(before[back-1]) {
			back--
		}
		if _, yes := cutEnd(before[:back], "hit your "); yes && back < n-1 {
			return true
		}
	}
	if begins(after, "s") {
		after = after[1:]
	}
	if len(after) > 0 && wordByte(after[0]) {
		return false
	}
	for _, space := range []string{" ", "_", "-", "\u2011"} {
		if rest, yes := bytes.CutSuffix(before, []byte(space)); yes {
			before = rest
			break
		}
	}
	for _, thing := range limited {
		if _, yes := cutEnd(before, thing); yes {
			return true
		}
	}
	return false
}

// aboutQuotaOrRequests looks around the q of "quota exceeded" and "too many
// requests".
func aboutQuotaOrRequests(text []byte, i int) bool {
	if begins(text[i:], "quests") {
		_, yes := cutEnd(text[:i], "too many re")
		return yes
	}
	if !begins(text[i:], "quota") {
		return false
	}
	after := text[i+len("quota"):]
	for _, then := range []string{" exceeded", " reached", " limit"} {
		if begins(after, then) {
			return true
		}
	}
	for _, whose := range []string{"current ", "daily ", "your "} {
		if _, yes := cutEnd(text[:i], whose); yes {
			return true
		}
	}
	return false
}

// aboutCredits looks around the f of "out of credits".
func aboutCredits(text []byte, i int) bool {
	_, out := cutEnd(text[:i], "out o")
	return out && (begins(text[i:], "f credits") || begins(text[i:], "f extra usage"))
}

// begins reports whether b begins with a lower-case ASCII text, in any case.
func begins(b []byte, text string) bool {
	return len(b) >= len(text) && sameLetters(b[:len(text)], text)
}

// cutEnd takes a lower-case ASCII text from the end of b, in any case.
func cutEnd(b []byte, text string) (rest []byte, found bool) {
	n := len(b) - len(text)
	if n < 0 || !sameLetters(b[n:], text) {
		return b, false
	}
	return b[:n], true
}

func sameLetters(b []byte, text string) bool {
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != text[i] {
			return false
		}
	}
	return true
}

func wordByte(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}
