package agent

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/policy"
)

// Line is one line of output as JSON; it does not exist where that is no object. The line may be cut, or broken
// further on: what stands before is read, a string as far as it is there. Agents print lines of any length, and
// what classifies one stands at its head. The result is valid UTF-8 and no part of the line's memory.
func Line(line []byte) gjson.Result {
	line = bytes.TrimSpace(line)
	if len(line) == 0 || line[0] != '{' {
		return gjson.Result{}
	}
	text := string(line)
	if !utf8.ValidString(text) { // which is asked more quickly than made so
		text = strings.ToValidUTF8(text, "\uFFFD")
	}
	if line[len(line)-1] != '}' {
		text = ended(text)
	}
	return gjson.Parse(text)
}

// ended is a cut line with an end to the string in which it was cut, since gjson
// leaves out strings without one. It does not miss the ends of objects and lists.
func ended(line string) string {
	inside := false
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '"':
			inside = !inside
		case line[i] == '\\' && i+1 == len(line):
			line = line[:i] // half an escape
		case line[i] == '\\':
			i++
		}
	}
	if inside {
		line += `"`
	}
	return line
}

// Each calls visit with each element of a list; for what is no list it does nothing.
func Each(list gjson.Result, visit func(gjson.Result)) {
	if list.IsArray() {
		list.ForEach(func(_, element gjson.Result) bool {
			visit(element)
			return true
		})
	}
}

// Count is a number as a count: 0 where it is none, broken or negative.
func Count(v gjson.Result) int64 {
	n, err := strconv.ParseInt(v.Raw, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// Tokens are those of an object whose input includes the cached, by the names of its fields; nil for none.
func Tokens(usage gjson.Result, input, cached, output string) *policy.Tokens {
	if !usage.Exists() {
		return nil
	}
	return &policy.Tokens{Input: Count(usage.Get(input)), CachedInput: Count(usage.Get(cached)), Output: Count(usage.Get(output))}
}

// Dollars is a number as a cost, nil where it is none.
func Dollars(v gjson.Result) *float64 {
	if v.Type != gjson.Number || math.IsInf(v.Num, 0) || math.IsNaN(v.Num) {
		return nil
	}
	return &v.Num
}

// EditTools are a CLI's names of its tools that change files, and of their arguments beside content.
type EditTools struct {
	Write, Replace, Several []string
	Path, Before, After     string
}

// Edits are those that a call makes, nil where it makes none that are known.
func (n EditTools) Edits(tool string, input gjson.Result) []policy.Edit {
	path := input.Get(n.Path).Str
	if path == "" {
		return nil
	}
	replaced := func(part gjson.Result) policy.Edit {
		return edit.Replaced(path, part.Get(n.Before).Str, part.Get(n.After).Str)
	}
	switch {
	case slices.Contains(n.Write, tool):
		return []policy.Edit{edit.Written(path, input.Get("content").Str)}
	case slices.Contains(n.Replace, tool):
		return []policy.Edit{replaced(input)}
	case slices.Contains(n.Several, tool):
		var parts []policy.Edit
		Each(input.Get("edits"), func(part gjson.Result) {
			if len(parts) < edit.Max {
				parts = append(parts, replaced(part))
			}
		})
		return []policy.Edit{edit.Joined(path, parts)}
	}
	return nil
}
