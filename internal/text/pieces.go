package text

import (
	"cmp"
	"html"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

const (
	// pieceLength is how many letters and digits of a value in a row tell that they are a piece of it. Chance writes
	// a given six once in 2 thousand million.
	pieceLength = 6
	// wholeLength is from how many on as many as pieceLength less one may be missing: what is left over where a long
	// value is split evenly.
	wholeLength = 32
	// longestWord is how many letters in a row may still be a word; of English words one in a thousand has more.
	longestWord = 15
)

// fold adds to out the letters and digits of a text, without case, with what escapes of URLs, HTML and programming
// languages stand for in their place, and with plain letters for those of other shapes; and to at, where it is not nil, where
// each begins and ends in the text. Whatever stands between the pieces of a value is gone then.
func fold(s string, out []byte, at *[][2]int) []byte {
	for i := 0; i < len(s); {
		c, size := s[i], 1
		switch {
		case c >= 0x80:
			_, size = utf8.DecodeRuneInString(s[i:])
			if c = 0; size > 1 {
				if plain := norm.NFKC.String(s[i : i+size]); len(plain) == 1 {
					c = plain[0]
				}
			}
		case strings.IndexByte(`%\&0`, c) >= 0:
			c, size = escape(s[i:])
		}
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if 'a' <= c && c <= 'z' || '0' <= c && c <= '9' {
			if out = append(out, c); at != nil {
				*at = append(*at, [2]int{i, i + size})
			}
		}
		i += size
	}
	return out
}

// numbered are the escapes that give a byte as a number of so many digits.
var numbered = []struct {
	begin        string
	digits, base int
}{{"%", 2, 16}, {`\x`, 2, 16}, {`\u`, 4, 16}, {`\U`, 8, 16}, {`\`, 3, 8}, {"0x", 2, 16}, {"0X", 2, 16}}

// escape is the byte that a text begins with, as it is or escaped, and how long that is; 0 for what is no letter and
// no digit.
func escape(s string) (c byte, size int) {
	for _, e := range numbered {
		from, to := len(e.begin), len(e.begin)+e.digits
		if len(s) < to || s[:from] != e.begin {
			continue
		}
		n, err := strconv.ParseUint(s[from:to], e.base, 32)
		longer := s[0] == '0' && to < len(s) && strings.IndexByte("0123456789abcdefABCDEF", s[to]) >= 0 // no byte of a list of them
		if err == nil && n < 0x80 && !longer {
			return byte(n), to
		}
	}
	if strings.HasPrefix(s, `\n`) || strings.HasPrefix(s, `\r`) || strings.HasPrefix(s, `\t`) {
		return 0, 2
	}
	if end := strings.IndexByte(s[:min(len(s), 12)], ';') + 1; s[0] == '&' && end > 0 {
		if plain := html.UnescapeString(s[:end]); len(plain) == 1 {
			return plain[0], end
		} else if len(plain) < end {
			return 0, end
		}
	}
	return s[0], 1
}

// pieceTable has the places of all runs of pieceLength in folded values.
type pieceTable struct {
	values []pieced
	of     map[uint64][]pieceAt
}

// pieced is a value whose pieces are looked for, and where in it each letter and digit of its folded form is.
type pieced struct {
	raw, mark string
	folded    []byte // none where they are too few to tell anything
	where     [][2]int
}

type pieceAt struct{ value, at int }

// key is the piece that a folded text begins with, as a number.
func key(s []byte) (k uint64) {
	for _, c := range s[:pieceLength] {
		k = k<<8 | uint64(c)
	}
	return k
}

// add takes a value apart; one that folds to fewer than minSecret letters and digits is looked for as a whole only.
func (p *pieceTable) add(value, mark string) {
	v := pieced{raw: value, mark: mark}
	if v.folded = fold(value, nil, &v.where); len(v.folded) < minSecret {
		v.folded = nil
	}
	for at := range max(0, len(v.folded)-pieceLength+1) {
		piece := key(v.folded[at:])
		p.of[piece] = append(p.of[piece], pieceAt{len(p.values), at})
	}
	p.values = append(p.values, v)
}

// beyondWords is how many letters and digits of a piece ordinary text would not have: all of it where two long words follow
// each other as in the value, else those outside of words.
func beyondWords(piece string) (n int) {
	all, long := 0, 0
	for len(piece) > 0 {
		end := 0
		for end < len(piece) && alphanumeric(piece[end]) && (end == 0 || !upper(piece[end]) || upper(piece[end-1])) {
			end++
		}
		part := piece[:end]
		piece = piece[max(1, end):]
		if all += len(part); !word(part) {
			n += len(part)
		} else if len(part) >= pieceLength {
			long++
		}
	}
	if long > 1 {
		return all
	}
	return n
}

func upper(c byte) bool { return 'A' <= c && c <= 'Z' }

func alphanumeric(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' || '0' <= c && c <= '9' }

// word reports whether letters could be a word, or its beginning or end: one can be spoken, and letters that English
// seldom has (under 1 and under 3 in a hundred) are few. One of eight letters by chance is so once in six times.
func word(s string) bool {
	vowels, others, rare := 0, 0, 0 // others are those in a row
	for i := range len(s) {
		switch {
		case '0' <= s[i] && s[i] <= '9', i > 1 && upper(s[i]) != upper(s[1]):
			return false
		case strings.IndexByte("aeiouy", s[i]|0x20) >= 0:
			vowels, others = vowels+1, 0
		default:
			others++
			rare += strings.Count("jjqqxxzzkvw", string(s[i]|0x20))
		}
		if others > 4 {
			return false
		}
	}
	return 3*rare <= len(s) && 3 <= len(s) && len(s) <= longestWord && 4*vowels >= len(s)
}

// hide puts marks in place of the pieces of some values in a text. Those that have no letter or digit between them are one.
func (p pieceTable) hide(s string, values map[int]bool) string {
	if len(values) == 0 {
		return s
	}
	var where [][2]int
	folded := fold(s, nil, &where)
	var b strings.Builder
	end, last := 0, -pieceLength-1
	for i := range max(0, len(folded)-pieceLength+1) {
		for _, at := range p.of[key(folded[i:])] {
			if !values[at.value] {
				continue
			}
			if i > last+pieceLength {
				b.WriteString(s[end:where[i][0]] + p.values[at.value].mark)
			}
			end, last = where[i+pieceLength-1][1], i
			break
		}
	}
	return b.String() + s[end:]
}

// Search looks for the pieces of values in lines of many files. The zero value finds nothing.
type Search struct {
	p     pieceTable
	first map[pieceAt]Place
	last  Place
	tail  []byte
}

// Place is a line of a file from 1 on, or the file's name: 0.
type Place struct {
	Path string
	Line int
}

// Search begins to look for values that stand in pieces.
func (r Secrets) Search() *Search {
	return &Search{p: r.pieceTable, first: map[pieceAt]Place{}}
}

// See takes the next line of a file, or its name.
func (s *Search) See(at Place, line string) {
	if len(s.p.of) == 0 {
		return
	}
	if at.Path != s.last.Path || at.Line == 0 {
		s.tail = s.tail[:0]
	}
	s.last = at
	s.tail = fold(line, s.tail, nil)
	for i := range max(0, len(s.tail)-pieceLength+1) {
		for _, piece := range s.p.of[key(s.tail[i:])] {
			if _, known := s.first[piece]; !known {
				s.first[piece] = at
			}
		}
	}
	s.tail = append(s.tail[:0], s.tail[max(0, len(s.tail)-pieceLength+1):]...)
}

// complete reports whether the pieces of a value that were seen make up all of it, and more than words that any text may
// have: "development" and "password" in a large change are no value "development-password". Half of the letters must
// tell it, or all of it be in one piece.
func (s *Search) complete(value int) bool {
	v := s.p.values[value]
	seen := func(at int) bool { _, is := s.first[pieceAt{value, at}]; return is }
	length, covered, told, end := len(v.folded), 0, 0, 0
	for at := 0; at < length; at++ {
		if !seen(at) {
			continue
		}
		from := at
		for seen(at + 1) {
			at++
		}
		covered += at + pieceLength - max(from, end)
		end = at + pieceLength
		if end-from == length {
			return true
		}
		told += beyondWords(v.raw[v.where[from][0]:v.where[end-1][1]])
	}
	missing := length - covered
	return 2*told >= length && (missing == 0 || length >= wholeLength && missing < pieceLength)
}

// whole are the values, by their numbers, that the pieces which were seen make up.
func (s *Search) whole() map[int]bool {
	whole := map[int]bool{}
	for at := range s.first {
		if !whole[at.value] && s.complete(at.value) {
			whole[at.value] = true
		}
	}
	return whole
}

// Found are the places where the pieces of values were seen first whose pieces make up all of them, in the order of
// files and lines, each with what is there.
func (s *Search) Found() (places []Place, what map[Place]Leak) {
	what = map[Place]Leak{}
	for _, value := range slices.Sorted(maps.Keys(s.whole())) {
		for at := range s.p.values[value].folded {
			place, seen := s.first[pieceAt{value, at}]
			if _, known := what[place]; seen && !known {
				what[place] = leak("a value that Pawl gave", place.Path, string(s.p.values[value].folded))
			}
		}
	}
	for place := range what {
		places = append(places, place)
	}
	slices.SortFunc(places, func(a, b Place) int { return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line)) })
	return places, what
}
