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
	s := scanner{b: b}
	if !s.take('{') {
		return nil
	}
	f := fields{}
	for first := true; !s.take('}'); first = false {
		if !first && !s.take(',') {
			return nil
		}
		s.space()
		key, ok := s.key()
		if !ok || !s.take(':') {
			return nil
		}
		s.space()
		start := s.at
		if !s.value() {
			return nil
		}
		f[key] = b[start:s.at:s.at]
	}
	if s.space(); s.at != len(b) {
		return nil
	}
	return f
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
