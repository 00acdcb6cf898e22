package gateway

import (
	"strings"

	"github.com/tidwall/gjson"
)

// mayRefer reports whether JSON may contain references or tools. It finds field names by their closing quotes.
func mayRefer(raw string) bool {
	if mentions(raw, `"file"`, `"item_reference"`) || beginsRemote(raw) {
		return true
	}
	for at := range len(raw) {
		if raw[at] != '"' {
			continue
		}
		switch name := nameBefore(raw[:at]); name {
		case "", "call_id", "tool_call_id", "tool_use_id": // part of each tool call
		case "id":
			if loneID(raw, at) {
				return true
			}
		default:
			if refersByName(name) {
				return true
			}
		}
	}
	return false
}

// longestName exceeds the length in bytes of every field name that may refer to something.
const longestName = 64

// nameBefore returns the field name that ends text, or an empty string if the name cannot refer to anything.
func nameBefore(text string) string {
	if text == "" {
		return ""
	}
	switch text[len(text)-1] {
	case 'd', 'D', 's', 'S', 'l', 'L', 'i', 'I':
	default:
		return ""
	}
	text = text[max(0, len(text)-longestName):]
	return text[strings.LastIndexByte(text, '"')+1:]
}

func refersByName(name string) bool {
	plain := plainName(name)
	return isID(name, plain) || addressName.MatchString(plain) || toolsName.MatchString(plain)
}

// loneID reports whether the name "id", which ends at a quote, may be its object's only field.
func loneID(raw string, quote int) bool {
	const space = " \t\r\n"
	before := strings.TrimRight(raw[:quote-len(`"id`)], space)
	if strings.HasSuffix(before, "{") {
		return onlyID(gjson.Parse(raw[len(before)-1:]))
	}
	value := strings.TrimLeft(raw[quote+1:], space+":")
	after := value[len(gjson.Parse(value).Raw):]
	return strings.HasPrefix(strings.TrimLeft(after, space), "}")
}

func beginsRemote(raw string) bool {
	const before = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+.- \\"
	for i := 0; ; {
		next := strings.Index(raw[i:], "//")
		if next < 0 {
			return strings.Contains(raw, `\/`) // an escaped slash
		}
		scheme, ok := strings.CutSuffix(raw[i:i+next], ":")
		if ok && strings.HasSuffix(strings.TrimRight(scheme, before), `"`) {
			return true
		}
		i += next + len("//")
	}
}
