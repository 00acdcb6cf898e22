package simhash

import "strings"

// place is the scanner's position in its line, for rule 5.
type place byte

const (
	lineStart   place = iota // only white space since the line began
	inLine                   // after a word
	afterNumber              // only white space since a removed line number
)

// scan computes the fingerprint in one pass without allocating. Rules 1, 2 and 4 remove whole runs of word characters,
// and rule 5 only line starts. One pass then gives the same result as consecutive removals. Rule 3 has no \b: removing
// a time stamp can join its neighbours (1234<time stamp>5678), or its end can run into an identifier. Then ok is false,
// and the caller must use Normalise.
func scan(text string) (p Print, ok bool) {
	var s shingles
	at := lineStart
	for i := 0; i < len(text); {
		n, newline := white(text[i:])
		i += n
		var begins bool
		switch at {
		case lineStart:
			begins = true
		case inLine:
			begins = newline
			if newline {
				at = lineStart
			}
		case afterNumber:
			// The white space after a removed number is removed too. The next word begins a line only if that white
			// space ends with a line end.
			begins = n > 0 && text[i-1] == '\n'
		}
		end := i
		for end < len(text) && !is(text[end], isSpace) {
			end++
		}
		word := text[i:end]
		if begins {
			if n := lineNumber(word, text[end:]); n > 0 {
				word = word[n:]
				at = afterNumber
			}
		}
		i = end
		some, ok := s.word(word)
		if !ok {
			return 0, false
		}
		if some {
			at = inLine
		}
	}
	return s.print(), true
}

// white returns the length of text's leading white space, and whether it has a line end.
func white(text string) (n int, newline bool) {
	for n < len(text) && is(text[n], isSpace) {
		if text[n] == '\n' {
			newline = true
		}
		n++
	}
	return n, newline
}

// lineNumber returns the length of a line number (rule 5) at the start of a word; behind is the following text. Rule
// 4 removes numbers of 8 to 64 digits first.
func lineNumber(word, behind string) int {
	n := leading(word, isDigit)
	if n == 0 || hashAt(n, isHex) > 0 {
		return 0
	}
	if n == len(word) {
		if strings.HasPrefix(behind, "\t") {
			return n
		}
		return 0
	}
	switch word[n] {
	case ':', '|':
		return n + 1
	}
	return 0
}

// word hashes a word after rules 1 to 4. some is false if nothing is left. ok is false if one pass cannot tell.
func (s *shingles) word(word string) (some, ok bool) {
	const shortest = 8 // the shortest removal: a hash of 8 digits
	if len(word) < shortest {
		if word == "" {
			return false, true
		}
		s.begin()
		s.extend(word)
		s.end()
		return true, true
	}
	return s.longWord(word)
}

// longWord is word for a word long enough for removals.
func (s *shingles) longWord(word string) (some, ok bool) {
	keep := func(part string) {
		if part == "" {
			return
		}
		if !some {
			s.begin()
			some = true
		}
		s.extend(part)
	}
	kept := 0 // everything before this index is hashed or removed
	for i := 0; i < len(word); {
		n, shared := run(word[i:])
		if n == 0 {
			i++
			continue
		}
		drop, ok := removable(word[i:], n, shared)
		if !ok {
			return false, false
		}
		if drop == 0 {
			i += n
			continue
		}
		keep(word[kept:i])
		i += drop
		kept = i
	}
	keep(word[kept:])
	if some {
		s.end()
	}
	return some, true
}

// removable returns the length that rules 1 to 4 remove at the start of a run. The run has n word characters that share
// the given classes.
func removable(text string, n int, shared byte) (drop int, ok bool) {
	if n == 8 && shared&isHex != 0 {
		if drop = uuidAt(text); drop > 0 {
			return drop, true
		}
	}
	if drop = identifierAt(text, n); drop > 0 {
		return drop, true
	}
	if n >= 4 && dashAt(text, n) {
		if stamp := timestampAt(text[n-4:]); stamp > 0 {
			return stamp, n == 4 && standsAlone(text, stamp)
		}
	}
	return hashAt(n, shared), true
}

func dashAt(text string, n int) bool { return n < len(text) && text[n] == '-' }

// standsAlone reports whether the time stamp in the first n bytes can be removed alone: no word character follows,
// and its last digits do not begin a UUID.
func standsAlone(text string, n int) bool {
	if n == len(text) {
		return true
	}
	last := n
	for is(text[last-1], isWord) {
		last--
	}
	if is(text[n], isWord) {
		return false
	}
	return text[n] != '-' || n-last != 8
}
