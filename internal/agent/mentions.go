package agent

import (
	"bytes"
	"encoding/binary"
)

// mentionWords are words of five bytes of which every text about limits has one,
// and what tells by the text around.
var mentionWords = []struct {
	word   string
	anchor int // where in the word about begins
	// sure stands so many bytes after the anchor, and in little else that has a
	// pair of letters in common with the word.
	after int
	sure  byte
	// about reports whether what stands around the anchor, at text[i], is about a
	// limit.
	about func(text []byte, i int) bool
}{
	{"limit", 0, 2, 'm', aboutLimit},
	{"Limit", 0, 2, 'm', aboutLimit},
	{"quota", 0, 1, 'u', aboutQuotaOrRequests},
	{"Quota", 0, 1, 'u', aboutQuotaOrRequests},
	{"eques", 1, 1, 'u', aboutQuotaOrRequests},
	{"of cr", 0, 1, 'f', aboutCredits},
	{"of ex", 0, 1, 'f', aboutCredits},
}

// mentionPairs tells of two bytes, as a little-endian number, in which word they
// stand and where: the number of the word from 1, times 8, plus the offset. A pair
// that stands in several words leads to the same test at the same place.
var mentionPairs = func() (pairs [1 << 16]uint8) {
	for n, m := range mentionWords {
		for at := range len(m.word) - 1 {
			pair := binary.LittleEndian.Uint16([]byte(m.word[at : at+2]))
			if pairs[pair] == 0 {
				pairs[pair] = uint8((n+1)<<3 | at)
			}
		}
	}
	return pairs
}()

// quotesLimit reports whether text mentions a limit, wherever it stands. It is
// loose: it only counts mentions. The test holds the regexp that defines it.
//
// Commands print much, so it looks at every fourth pair of bytes only: one of
// them lies in any word of five.
func quotesLimit(text []byte) bool {
	for i := 0; i+1 < len(text); i += 4 {
		found := mentionPairs[binary.LittleEndian.Uint16(text[i:])]
		if found == 0 {
			continue
		}
		m := &mentionWords[found>>3-1]
		at := i - int(found&7) + m.anchor
		if at >= 0 && at+m.after < len(text) && text[at+m.after] == m.sure && m.about(text, at) {
			return true
		}
	}
	return false
}

// limited are the things that have limits.
var limited = []string{"usage", "rate", "session", "weekly", "daily", "monthly", "spend", "spending", "hour", "opus", "request"}

// aboutLimit looks around the l of "limit": "usage limit", "hit your weekly
// limit", "limit_reached".
func aboutLimit(text []byte, i int) bool {
	before, after := text[:i], text[i+1:]
	if text[i] != 'l' && text[i] != 'L' || !bytes.HasPrefix(after, []byte("imit")) {
		return false
	}
	after = after[len("imit"):]
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
	before, after := text[:i], text[i+1:]
	if text[i] == 'q' && bytes.HasPrefix(after, []byte("uests")) {
		_, many := cutEnd(before, "too many re")
		return many && before[i-1] == 'e'
	}
	after, is := bytes.CutPrefix(after, []byte("uota"))
	if !is || text[i] != 'q' && text[i] != 'Q' {
		return false
	}
	for _, then := range []string{" exceeded", " reached", " limit"} {
		if begins(after, then) {
			return true
		}
	}
	for _, whose := range []string{"current ", "daily ", "your "} {
		if _, yes := cutEnd(before, whose); yes {
			return true
		}
	}
	return false
}

// aboutCredits looks around the o of "out of credits".
func aboutCredits(text []byte, i int) bool {
	after, is := bytes.CutPrefix(text[i:], []byte("of "))
	_, out := cutEnd(text[:i], "out ")
	return is && out && (bytes.HasPrefix(after, []byte("cr")) && begins(after, "credits") || bytes.HasPrefix(after, []byte("ex")) && begins(after, "extra usage"))
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
