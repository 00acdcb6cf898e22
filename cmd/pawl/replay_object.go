package main

import "bytes"

// maxObject bounds what is kept of one JSON object; the rest is passed over, as
// the parsers of streams do with a long line.
const maxObject = 1 << 20

// objects puts JSON objects together that a log spreads over lines: printed
// with indentation, or cut into pieces wherever a buffer was full. It gives each
// object as one line. The zero value is ready.
type objects struct {
	buf      []byte
	depth    int
	inString bool
	escaped  bool
}

// open reports whether an object has begun and not ended.
func (o *objects) open() bool { return o.depth > 0 }

// piece takes the text of one line. It reports whether the text belonged to an
// object; emit gets each object that it completed.
func (o *objects) piece(text []byte, emit func([]byte) error) (took bool, err error) {
	if o.open() && !o.fits(text) {
		return false, nil
	}
	for {
		if !o.open() {
			text = bytes.TrimLeft(text, " \t\r")
			if len(text) == 0 || text[0] != '{' {
				return took, nil
			}
		}
		took = true
		n := o.scan(text)
		text = text[n:]
		if o.open() {
			return true, nil
		}
		if err := emit(o.buf); err != nil {
			return true, err
		}
		o.buf = o.buf[:0]
	}
}

// fits reports whether a line can go on with the open object. Outside of a
// string only JSON can; inside one, anything.
func (o *objects) fits(text []byte) bool {
	if o.inString {
		return true
	}
	text = bytes.TrimLeft(text, " \t\r")
	return len(text) > 0 && bytes.IndexByte([]byte(`{}[]",:-0123456789tfn`), text[0]) >= 0
}

// scan takes bytes until the object ends or the text does, and returns how many.
func (o *objects) scan(text []byte) int {
	for i, c := range text {
		keep := true
		switch {
		case o.escaped:
			o.escaped = false
		case o.inString:
			o.escaped = c == '\\'
			o.inString = c != '"'
		case c == '"':
			o.inString = true
		case c == '{' || c == '[':
			o.depth++
		case c == '}' || c == ']':
			o.depth--
		case c == ' ' || c == '\t' || c == '\r':
			keep = false
		}
		if keep && len(o.buf) < maxObject {
			o.buf = append(o.buf, c)
		}
		if o.depth == 0 {
			return i + 1
		}
	}
	return len(text)
}

// drop gives up an object that will not be completed and returns what there is
// of it, which is valid until the next piece.
func (o *objects) drop() []byte {
	rest := o.buf
	*o = objects{buf: o.buf[:0]}
	return rest
}
