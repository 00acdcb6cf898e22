package gateway

import (
	"bytes"
	"encoding/json"
)

// fields is a JSON object of which only some fields are looked at or changed;
// the others keep their bytes.
type fields map[string]json.RawMessage

// objectOf reads an object; nil where the data is none.
func objectOf(data []byte) fields {
	var f fields
	if json.Unmarshal(data, &f) != nil {
		return nil
	}
	return f
}

// listOf reads a list; nil where the data is none.
func listOf(data []byte) []json.RawMessage {
	var list []json.RawMessage
	if json.Unmarshal(data, &list) != nil {
		return nil
	}
	return list
}

func (f fields) text(name string) string {
	var s string
	if json.Unmarshal(f[name], &s) != nil {
		return ""
	}
	return s
}

func (f fields) integer(name string) int64 {
	var n count
	if json.Unmarshal(f[name], &n) != nil {
		return 0
	}
	return int64(n)
}

// has reports whether a field is there and not null.
func (f fields) has(name string) bool {
	v := f[name]
	return len(v) > 0 && string(v) != "null"
}

// set writes a value that encoding cannot fail for: strings, numbers, objects and lists of them.
func (f fields) set(name string, v any) { f[name] = encoded(v) }

// encoded writes JSON without escaping < and >, as providers write it.
func encoded(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if e.Encode(v) != nil {
		return []byte("null")
	}
	return bytes.TrimRight(b.Bytes(), "\n")
}

// named is an event with a name, as Responses and Messages send it.
func named(name string, v any) []byte {
	return append(append(append([]byte("event: "+name+"\ndata: "), encoded(v)...), '\n'), '\n')
}

// unnamed is an event without a name, as chat completions and Gemini send it.
func unnamed(v any) []byte {
	return append(append([]byte("data: "), encoded(v)...), '\n', '\n')
}
