package gateway

import (
	"bytes"
	"encoding/json"
)

// scanObject parts an object into its fields without looking into their values,
// which makes it some ten times as fast as encoding/json on the long
// conversations that agents send before each first byte. Of a value only where
// it ends is checked: the provider refuses what is wrong inside. It gives nil
// for what is no object. Of fields with the same name the last one counts, as
// in encoding/json and at the providers.
func scanObject(b []byte) fields {
	f, _ := scanNamed(b, "")
	return f
}

// scanNamed is scanObject, and tells of which fields the values may have objects in
// them with a field of this name; see mayName.
func scanNamed(b []byte, name string) (f fields, within map[string]bool) {
	s := scanner{b: b, name: name}
	if !s.take('{') {
		return nil, nil
	}
	f, within = fields{}, map[string]bool{}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return nil, nil
		}
		s.space()
		key, ok := s.key()
		if !ok || !s.take(':') {
			return nil, nil
		}
		s.space()
		start := s.at
		s.named = false
		if !s.value() {
			return nil, nil
		}
		f[key] = b[start:s.at:s.at]
		within[key] = s.named // of the last one with this name, which counts
	}
	if s.space(); s.at != len(b) {
		return nil, nil
	}
	return f, within
}

// mayName reports whether a value may have an object in it with a field of this
// name. It is true as well where a text is the name, and where a value is broken.
func mayName(b []byte, name string) bool {
	s := scanner{b: b, name: name}
	return !s.value() || s.named
}

// scanList parts a list into its entries in the same way; nil for what is none.
func scanList(b []byte) []json.RawMessage {
	s := scanner{b: b}
	if !s.take('[') {
		return nil
	}
	list := []json.RawMessage{}
	for first := true; !s.take(']'); first = false {
		if !first && !s.take(',') {
			return nil
		}
		s.space()
		start := s.at
		if !s.value() {
			return nil
		}
		list = append(list, b[start:s.at:s.at])
	}
	return list
}

type scanner struct {
	b  []byte
	at int
	// named is set by each string that is name, or could be: a short one with
	// letters that are written as escapes (\u0074).
	name  string
	named bool
}

// longEscape is how many bytes the longest form of a character of ASCII has.
const longEscape = len(`\u0074`)

// see looks whether a string, with its quotes, may be the name.
func (s *scanner) see(raw []byte) {
	n := len(raw) - len(`""`)
	if n < len(s.name) || s.name == "" || raw[1] != s.name[0] && raw[1] != '\\' {
		return // most of all strings
	}
	if string(raw[1:1+n]) == s.name || n <= longEscape*len(s.name) && bytes.Contains(raw, []byte(`\u`)) {
		s.named = true
	}
}

func (s *scanner) space() {
	for s.at < len(s.b) && (s.b[s.at] == ' ' || s.b[s.at] == '\n' || s.b[s.at] == '\r' || s.b[s.at] == '\t') {
		s.at++
	}
}

// take skips one character if it is the next after white space.
func (s *scanner) take(c byte) bool {
	s.space()
	if s.at < len(s.b) && s.b[s.at] == c {
		s.at++
		return true
	}
	return false
}

// key reads a name; one that is written with escapes is decoded.
func (s *scanner) key() (string, bool) {
	start := s.at
	if !s.text() {
		return "", false
	}
	raw := s.b[start:s.at]
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(raw[1 : len(raw)-1]), true
	}
	var name string
	return name, json.Unmarshal(raw, &name) == nil
}

// text skips a string.
func (s *scanner) text() bool {
	if s.at >= len(s.b) || s.b[s.at] != '"' {
		return false
	}
	start := s.at
	s.at++
	for {
		n := bytes.IndexByte(s.b[s.at:], '"')
		if n < 0 {
			return false
		}
		end := s.at + n
		slashes := 0
		for end-slashes > s.at && s.b[end-slashes-1] == '\\' {
			slashes++
		}
		s.at = end + 1
		if slashes%2 == 0 {
			s.see(s.b[start:s.at])
			return true
		}
	}
}

// value skips a value of any kind.
func (s *scanner) value() bool {
	depth := 0
	for s.at < len(s.b) {
		switch c := s.b[s.at]; c {
		case '"':
			if !s.text() {
				return false
			}
		case '{', '[':
			depth++
			s.at++
			continue
		case '}', ']':
			if depth == 0 {
				return false
			}
			depth--
			s.at++
		default:
			if depth == 0 {
				return s.word()
			}
			s.at++
			continue
		}
		if depth == 0 {
			return true
		}
	}
	return false
}

// word skips a number, true, false or null.
func (s *scanner) word() bool {
	n := bytes.IndexAny(s.b[s.at:], ",}] \n\r\t")
	if n <= 0 {
		return false
	}
	ok := json.Valid(s.b[s.at : s.at+n])
	s.at += n
	return ok
}
