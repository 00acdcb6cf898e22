package gateway

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
)

// A request may have any field, since a newer CLI may need an unknown one. These rules deny, at any depth:
//
//   - hosted: the provider would run something (tools.go has removed hosted tools already)
//   - later: the answer would continue after the call, and could not be counted
//   - tier: the answer would have another price
//   - stored, id, address: the provider would look up content that the gateway does not see
//   - model: another model than the backend's
//
// All but idName match names in plainName's form. A false, null or empty field asks for nothing.
var (
	hostedName = regexp.MustCompile(`^prompt$|search|brows(?:e|ing)|crawl|fetch|grounding|retriev|interpreter|execution|computeruse|mcp|plugin|` +
		`connector|container|skill|preset|datasource|knowledge|internet|online|compound|imagegeneration`)
	laterName = regexp.MustCompile(`background|deferred|async|webhook|callback`)
	tierName  = regexp.MustCompile(`^(?:servicetier|speed|inferencegeo)$`)
	// storedName matches earlier answers, conversations, caches and fallback models, which may be another attempt's.
	storedName  = regexp.MustCompile(`^(?:previous|stored|saved)|^(?:conversation|cachedcontents?)$|(?:models|fallbacks)$`)
	idName      = regexp.MustCompile(`(?:[_-](?i:ids?)|Ids?|IDs?)$`)
	addressName = regexp.MustCompile(`ur[li]s?$`)
	modelName   = regexp.MustCompile(`(?:model|fallback)$`)
	toolsName   = regexp.MustCompile(`tool(?:s|sets?)$`)
)

// Exceptions to the rules.
var (
	// ownID matches ids that link a request's parts or identify the sender, and token ids.
	ownID = regexp.MustCompile(`^(?:(?:tool|function)?call|(?:parent)?tooluse|.*user|session|(?:client)?request|trace|turn|.*token)ids?$`)
	// ownName matches fields that providers ignore, and schemas with the agent's names.
	ownName      = regexp.MustCompile(`^(?:(?:client)?metadata|labels|diagnostics|functions|json|guidedjson)$|schema$`)
	negativeName = regexp.MustCompile(`^(?:exclude|disable|deny|block|ignore)`)
	// conversationName matches fields with the conversation. Only references and hosted tools are denied there.
	conversationName = regexp.MustCompile(`^(?:input|messages|contents|system|systeminstruction)$`)
	// agentsName matches the agent's own values in a conversation, such as tool arguments and results.
	agentsName = regexp.MustCompile(`^(?:action|args|arguments|input|operation|response)$`)
	// textName matches fields whose text may be an address.
	textName = regexp.MustCompile(`^(?:code|content|output|reasoning|reasoningcontent|refusal|source|text|thinking|title|instructions|stop|stopsequences|user)$`)
)

// plainName returns a lower-case name without _ and -, as lenient servers compare names. Upper case comes first, because
// encoding/json reads ſ as s.
func plainName(name string) string {
	return unscored.Replace(strings.ToLower(strings.ToUpper(name)))
}

var unscored = strings.NewReplacer("_", "", "-", "")

// exactNames lists fields that the gateway reads by exact name.
var exactNames = []string{"model", "stream", "tools", "tool_choice", "input", "messages", "contents", "system"}

// spelledOtherwise finds a field name in another case, which lenient servers accept.
func (f fields) spelledOtherwise(names ...string) (other, name string) {
	for other := range f {
		for _, name := range names {
			if other != name && strings.EqualFold(other, name) {
				return other, name
			}
		}
	}
	return "", ""
}

// denial checks fields of a request.
type denial struct {
	kind  callKind
	grant Grant
	field string
}

// denied refuses a request by the rules above.
func (f fields) denied(kind callKind, g Grant) error {
	if other, name := f.spelledOtherwise(exactNames...); other != "" {
		return fmt.Errorf("%.80q is not allowed: write it %s", other, name)
	}
	for _, name := range slices.Sorted(maps.Keys(f)) {
		if name == "tools" {
			continue // see dropHosted
		}
		d := denial{kind, g, name}
		if err := d.checkField(name, f[name], maxDepth); err != nil {
			return err
		}
	}
	return nil
}

// checkField checks a field outside of the conversation, recursively.
func (d denial) checkField(name string, v gjson.Result, depth int) error {
	plain := plainName(name)
	if asksNothing(v) || ownName.MatchString(plain) {
		return nil
	}
	if negativeName.MatchString(plain) && onlyNames(v) {
		return nil
	}
	switch {
	case depth == 0:
		return d.tooDeep()
	case conversationName.MatchString(plain):
		return d.conversation(v, depth)
	case isTools(plain, v):
		return d.tools(v)
	}
	if err := d.rule(name, plain, v); err != nil {
		return err
	}
	return within(name, v, func(name string, v gjson.Result) error { return d.checkField(name, v, depth-1) })
}

// asksNothing reports whether a value switches its field off.
func asksNothing(v gjson.Result) bool {
	switch v.Type {
	case gjson.Null, gjson.False:
		return true
	case gjson.String:
		return v.Str == ""
	default:
		return v.IsArray() && !v.Get("0").Exists()
	}
}

func onlyNames(v gjson.Result) bool {
	for entry := range elements(v) {
		if entry.Type == gjson.JSON {
			return false
		}
	}
	return !v.IsObject()
}

// within visits an object's fields, or a list's elements under the list's name. It stops at the first error.
func within(name string, v gjson.Result, look func(string, gjson.Result) error) (err error) {
	if v.Type != gjson.JSON {
		return nil
	}
	named := v.IsObject()
	v.ForEach(func(field, value gjson.Result) bool {
		if named {
			name = field.Str
		}
		err = look(name, value)
		return err == nil
	})
	return err
}

func (d denial) rule(name, plain string, v gjson.Result) error {
	switch {
	case d.isHosted(plain, v):
		return errHosted
	case laterName.MatchString(plain):
		return fmt.Errorf("%s is not allowed: an answer that goes on after the call could not be counted", name)
	case tierName.MatchString(plain) && !standardTiers[strings.ToLower(v.Str)]:
		return fmt.Errorf("%s %.40s is not allowed: it has another price; leave it out", name, v.Raw)
	case storedName.MatchString(plain) && !v.IsBool():
		return d.refers(name)
	case modelName.MatchString(plain) && v.Type == gjson.String:
		return d.model(strings.TrimPrefix(v.Str, "models/")) // Google's form
	}
	return d.reference(name, plain, v)
}

var standardTiers = map[string]bool{
	"auto":          true,
	"default":       true,
	"standard":      true,
	"standard_only": true,
	"global":        true,
}

// isHosted checks a field by its name, and a type by its value.
func (d denial) isHosted(plain string, v gjson.Result) bool {
	if plain != "type" {
		return hostedName.MatchString(plain)
	}
	return hostedName.MatchString(plainName(v.Str)) && !forms[d.kind].local.MatchString(v.Str)
}

func (d denial) model(name string) error {
	routed := strings.ToLower(name) // OpenRouter's suffixes add search or stored presets
	if strings.Contains(routed+":", ":online:") || strings.Contains(routed, "@preset/") {
		return errHosted
	}
	return d.grant.refusesModel(name)
}

func isTools(plain string, v gjson.Result) bool { return toolsName.MatchString(plain) && v.IsArray() }

// tools refuses hosted tools. A tool may be just a name.
func (d denial) tools(list gjson.Result) error {
	for entry := range elements(list) {
		if entry.Type == gjson.String {
			if hostedName.MatchString(plainName(entry.Str)) {
				return errHosted
			}
			continue
		}
		if d.kind.localTool(entry) != entry.Raw {
			return errHosted
		}
	}
	return nil
}

// conversation looks for references in the conversation. Searching the text first is faster.
func (d denial) conversation(v gjson.Result, depth int) error {
	if !mayRefer(v.Raw) {
		return nil
	}
	return d.checkContent("content", v, depth)
}

// checkContent checks a field of a conversation, recursively.
func (d denial) checkContent(name string, v gjson.Result, depth int) error {
	plain := plainName(name)
	switch {
	case depth == 0 && d.grant.Provider.AllowRemote:
		return nil
	case depth == 0:
		return d.tooDeep()
	case agentsName.MatchString(plain):
		return nil
	case isTools(plain, v):
		return d.tools(v)
	}
	if err := d.reference(name, plain, v); err != nil {
		return err
	}
	return within(name, v, func(name string, v gjson.Result) error { return d.checkContent(name, v, depth-1) })
}

// reference refuses a field that refers to content outside the request.
func (d denial) reference(name, plain string, v gjson.Result) error {
	switch {
	case v.Type == gjson.JSON:
		return d.whole(v)
	case asksNothing(v), v.IsBool():
	case plain == "type" && referenceTypes[v.Str]:
		return d.refers(v.Str)
	case isID(name, plain):
		return d.refers(name)
	case isAddress(plain, v.Str):
		return d.refers("an address")
	}
	return nil
}

// isAddress reports whether a text is an address, by its field or beginning.
func isAddress(plain, text string) bool {
	if addressName.MatchString(plain) {
		return !strings.HasPrefix(text, "data:")
	}
	return remote.MatchString(text) && !textName.MatchString(plain)
}

func isID(name, plain string) bool { return idName.MatchString(name) && !ownID.MatchString(plain) }

var referenceTypes = map[string]bool{"item_reference": true, "url": true}

// whole refuses an object without content of its own.
func (d denial) whole(v gjson.Result) error {
	file := v.Get("type").Str == "file"
	switch {
	case onlyID(v):
		return d.refers("an id")
	case file && !v.Get("file").Exists():
		return d.refers("file")
	}
	return nil
}

// onlyID reports whether an object has an id and no content of its own.
func onlyID(v gjson.Result) bool {
	if !v.IsObject() {
		return false
	}
	id, more := false, false
	v.ForEach(func(name, _ gjson.Result) bool {
		switch name.Str {
		case "id":
			id = true
		case "type", "object", "status", "version", "variables":
		default:
			more = true
		}
		return !more
	})
	return id && !more
}

// refers refuses a reference unless the operator allows references.
func (d denial) refers(what string) error {
	switch {
	case d.grant.Provider.AllowRemote:
		return nil
	case what == d.field:
		return fmt.Errorf("%s is not allowed: send the whole conversation, for one model", what)
	}
	return fmt.Errorf("%s in %s is not allowed: send the content itself", what, d.field)
}

func (d denial) tooDeep() error {
	return fmt.Errorf("nesting deeper than %d levels in %s is not allowed", maxDepth, d.field)
}

// remote matches the beginning of another machine's address.
var remote = regexp.MustCompile(`^\s*[A-Za-z][A-Za-z0-9+.-]*://`)
