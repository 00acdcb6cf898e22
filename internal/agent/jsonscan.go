package agent

import (
	"bytes"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// members calls visit with the key and raw value of each member of the JSON
// object that b begins with. Unlike encoding/json it reads as far as it can: a
// value that is cut off is passed on as far as it goes, and broken syntax ends
// the walk. Agents print lines of any length, and the fields that classify a
// line stand at its head.
func members(b []byte, visit func(key, value []byte)) {
	i := skipSpace(b, 0)
	if i < len(b) && b[i] == '{' {
		membersFrom(b[i+1:], visit)
	}
}

// membersFrom is members for the rest of an object after its brace or after one
// of its members.
func membersFrom(b []byte, visit func(key, value []byte)) {
	for i := 0; ; {
		i = skipSpace(b, i)
		if i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		if i >= len(b) || b[i] != '"' {
			return
		}
		end := valueEnd(b, i)
		colon := skipSpace(b, end)
		if colon >= len(b) || b[colon] != ':' {
			return
		}
		key := b[i+1 : end-1]
		start := skipSpace(b, colon+1)
		i = valueEnd(b, start)
		if i == start {
			return
		}
		visit(key, b[start:i])
	}
}

// elements calls visit with each raw element of the JSON array that b begins with.
func elements(b []byte, visit func(value []byte)) {
	i := skipSpace(b, 0)
	if i >= len(b) || b[i] != '[' {
		return
	}
	for i++; ; {
		i = skipSpace(b, i)
		if i < len(b) && b[i] == ',' {
			i = skipSpace(b, i+1)
		}
		end := valueEnd(b, i)
		if end == i {
			return
		}
		visit(b[i:end])
		i = end
	}
}

// member returns the raw value of one member, nil where there is none. The last of equal keys wins.
func member(b []byte, name string) (found []byte) {
	members(b, func(key, value []byte) {
		if string(key) == name {
			found = value
		}
	})
	return found
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\r' || b[i] == '\n') {
		i++
	}
	return i
}

// valueEnd returns where the JSON value at i ends, or len(b) where it is cut
// off. It returns i where no value begins.
func valueEnd(b []byte, i int) int {
	if i >= len(b) {
		return i
	}
	switch b[i] {
	case '"':
		return stringEnd(b, i)
	case '{', '[':
		return nestedEnd(b, i)
	}
	for ; i < len(b); i++ {
		switch b[i] {
		case ',', ']', '}', ':', ' ', '\t', '\r', '\n':
			return i
		}
	}
	return i
}

func stringEnd(b []byte, i int) int {
	for i++; i < len(b); {
		quote := bytes.IndexByte(b[i:], '"')
		if quote < 0 {
			return len(b)
		}
		i += quote + 1
		if !escaped(b, i-1) {
			return i
		}
	}
	return len(b)
}

// escaped reports whether an odd number of backslashes stands before b[i].
func escaped(b []byte, i int) bool {
	back := i - 1
	for back >= 0 && b[back] == '\\' {
		back--
	}
	return (i-1-back)%2 == 1
}

func nestedEnd(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			i = stringEnd(b, i)
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
			if depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return len(b)
}

// stringOf returns the text of a raw JSON string and "" for any other value.
// A cut string gives what is there; invalid UTF-8 and lone surrogates become U+FFFD.
func stringOf(raw []byte) string {
	if len(raw) == 0 || raw[0] != '"' {
		return ""
	}
	raw = raw[1:]
	if n := len(raw); n > 0 && raw[n-1] == '"' && !escaped(raw, n-1) {
		raw = raw[:n-1]
	}
	text := unescape(raw)
	if utf8.ValidString(text) { // which is asked more quickly than made so
		return text
	}
	return strings.ToValidUTF8(text, "\uFFFD")
}

// bare returns the inside of a raw JSON string as it stands, for comparing it
// with names that need no escapes.
func bare(raw []byte) []byte {
	if n := len(raw); n >= 2 && raw[0] == '"' && raw[n-1] == '"' {
		return raw[1 : n-1]
	}
	return nil
}

// unescape replaces the escapes of a JSON string; one that is cut off or unknown is dropped.
func unescape(raw []byte) string {
	plain := bytes.IndexByte(raw, '\\')
	if plain < 0 {
		return string(raw)
	}
	var out strings.Builder
	out.Grow(len(raw))
	for ; plain >= 0; plain = bytes.IndexByte(raw, '\\') {
		out.Write(raw[:plain])
		if raw = raw[plain+1:]; len(raw) == 0 {
			break
		}
		c := raw[0]
		raw = raw[1:]
		switch c {
		case 'n':
			out.WriteByte('\n')
		case 't':
			out.WriteByte('\t')
		case 'r':
			out.WriteByte('\r')
		case 'b':
			out.WriteByte('\b')
		case 'f':
			out.WriteByte('\f')
		case '"', '\\', '/':
			out.WriteByte(c)
		case 'u':
			r, n := hexRune(raw)
			out.WriteRune(r)
			raw = raw[n:]
		}
	}
	out.Write(raw)
	return out.String()
}

// hexRune reads the four digits after \u, and a following low surrogate with
// them. It returns how many bytes it used.
func hexRune(b []byte) (rune, int) {
	if len(b) < 4 {
		return utf8.RuneError, len(b)
	}
	high, err := strconv.ParseUint(string(b[:4]), 16, 16)
	if err != nil {
		return utf8.RuneError, 0
	}
	r := rune(high)
	if !utf16.IsSurrogate(r) {
		return r, 4
	}
	if len(b) >= 10 && b[4] == '\\' && b[5] == 'u' {
		if low, err := strconv.ParseUint(string(b[6:10]), 16, 16); err == nil {
			if pair := utf16.DecodeRune(r, rune(low)); pair != utf8.RuneError {
				return pair, 10
			}
		}
	}
	return utf8.RuneError, 4
}

// intOf returns a raw JSON number as a count: 0 where it is not one or negative.
func intOf(raw []byte) int64 {
	n, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// floatOf returns a raw JSON number, nil where it is not one.
func floatOf(raw []byte) *float64 {
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || math.IsInf(f, 0) || math.IsNaN(f) {
		return nil
	}
	return &f
}
