package gateway

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// object keeps the literals of JSON that the gateway writes short.
type object map[string]any

// manyBrackets is how many opening brackets a text may have that gjson checks. It goes one call deeper with
// each, and a full stack ends the process; encoding/json is some four times slower and goes 10,000 deep.
const manyBrackets = 1 << 16

// parsed reads a text; false for what is no JSON. The whole text is checked: of
// what is broken inside, gjson and a provider could read different things.
func parsed(text string) (gjson.Result, bool) {
	valid := gjson.Valid
	if strings.Count(text, "{")+strings.Count(text, "[") > manyBrackets {
		valid = func(text string) bool { return json.Valid([]byte(text)) }
	}
	if !valid(text) {
		return gjson.Result{}, false
	}
	return gjson.Parse(text), true
}

// fields are those of an object by name. Of equal names the last counts, as at the providers; gjson's Get would
// give the first. Names are compared exactly: with encoding/json's structs "MODEL" would replace "model", and
// another price count.
type fields map[string]gjson.Result

func fieldsOf(v gjson.Result) fields {
	if !v.IsObject() {
		return nil
	}
	f := fields{}
	v.ForEach(func(name, value gjson.Result) bool {
		f[name.Str] = value
		return true
	})
	return f
}

func (f fields) has(name string) bool { return f[name].Type != gjson.Null }

func (f fields) set(name, raw string) { f[name] = gjson.Parse(raw) }

// json writes the fields as an object, sorted by their names.
func (f fields) json() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(f)) {
		all = append(all, encoded(name)+":"+f[name].Raw)
	}
	return "{" + strings.Join(all, ",") + "}"
}

func list(raws []string) string { return "[" + strings.Join(raws, ",") + "]" }

// encoded writes JSON without escaping < and >, as providers do, of values that encoding cannot fail for.
func encoded(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimRight(b.String(), "\n")
}

// maxCount is more tokens than any model takes in one call.
const maxCount = 1 << 40

// count is a number of tokens. One that is negative or absurd is read as the
// nearest that is not, so that no answer lowers a total; what is no number is 0.
func count(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	return int64(min(max(v.Num, 0), maxCount))
}
