package gateway

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/tidwall/gjson"
	"github.com/tidwall/sjson"

	"github.com/pawlbot/pawl/config"
)

type request struct {
	body    string // as it is sent to the provider
	size    int    // bytes of it as it is first sent, also when it is no longer held
	sum     uint64 // stands for the body as the agent sent it, within this process
	unknown string // the names of fields that were taken out
	model   string
	most    int64 // tokens that the answer may have, by the request or the usual
	stream  bool
	tools   bool // it offers tools
	// usageAdded is true where the gateway asked for the usage of a streamed chat
	// completion, so that the chunk that carries it is kept from the agent.
	usageAdded bool
}

// sums seeds the hashes of requests, so that nobody makes two that collide.
var sums = maphash.MakeSeed()

// maxModel bounds the name of a model in bytes; some of routers have eighty.
const maxModel = 256

// readRequest checks a body and prepares it for the provider. An error is for the agent.
func readRequest(r route, body string, g Grant) (request, error) {
	out := request{body: body, size: len(body), model: r.model, stream: r.stream}
	if r.kind == models {
		return out, nil
	}
	whole, ok := parsed(body)
	f, twice := namesOf(whole)
	if !ok || f == nil {
		return out, errors.New("the body is no JSON object")
	}
	if twice != "" { // the provider may read the other one
		return out, fmt.Errorf("%.80q stands twice in the body: send it once", twice)
	}
	if f["background"].Type == gjson.True {
		return out, errors.New("background is not allowed: an answer that goes on after the call could not be counted")
	}
	if r.protocol != config.Google {
		out.model, out.stream = f["model"].Str, f["stream"].Type == gjson.True
	}
	if len(out.model) > maxModel {
		return out, fmt.Errorf("the name of the model is longer than %d bytes", maxModel)
	}
	if !g.allows(out.model) {
		return out, fmt.Errorf("the model %.80q is not allowed here: use %s; the operator can allow others by side_models of the backend", out.model, g.Model)
	}
	if err := standardTier(f); err != nil {
		return out, err
	}
	if err := fromElsewhere(f); err != nil && !g.Provider.AllowRemote {
		return out, err
	}
	adds, changed, err := dropHosted(r.kind, f)
	if err != nil {
		return out, err
	}
	if out.unknown = dropUnknown(r.kind, f); changed || out.unknown != "" {
		out.body = f.json()
	}
	out.most = mostOf(r.kind, f)
	out.tools = f["tools"].Get("0").IsObject() || adds
	if r.kind == chat && out.stream && f["stream_options"].Get("include_usage").Type != gjson.True {
		if asked, err := sjson.Set(out.body, "stream_options.include_usage", true); err == nil {
			out.body, out.usageAdded = asked, true
		}
	}
	out.size, out.sum = len(out.body), maphash.String(sums, body)
	return out, nil
}

func mostOf(kind callKind, f fields) int64 {
	if kind == generate {
		for _, name := range []string{"generationConfig", "generation_config"} {
			if f.has(name) {
				f = fieldsOf(f[name])
			}
		}
	}
	most, answers := int64(0), int64(1)
	for _, name := range forms[kind].limits {
		most = max(most, count(f[name]))
	}
	for _, name := range forms[kind].answers {
		answers = max(answers, count(f[name]))
	}
	return min(cmp.Or(most, usualOutput), maxOutput) * min(answers, maxAnswers)
}

// Bounds of what a request may make the gateway reckon with. No model answers
// with a million tokens, and no provider gives more answers than 128 at once.
const (
	maxOutput  = 1 << 20
	maxAnswers = 128
)

// tierFields choose how fast, and for which price, the provider serves a request.
var tierFields = []string{"service_tier", "serviceTier", "speed"}

// standardTier refuses what the provider serves faster for a higher price.
func standardTier(f fields) error {
	for _, name := range tierFields {
		switch tier := strings.ToLower(f[name].Str); {
		case !f.has(name) || tier == "auto" || tier == "default" || tier == "standard" || tier == "standard_only":
		default:
			return fmt.Errorf("%s %.40s is not allowed: it has another price; leave it out", name, f[name].Raw)
		}
	}
	return nil
}

// geminiLocal are Gemini's tools that the agent runs; each other field names something that Google does.
var geminiLocal = map[string]bool{"functionDeclarations": true, "function_declarations": true}

// hostedFields are fields of a request by which a provider runs something, or answers by what is kept there: MCP servers,
// skills and stored prompts, OpenAI's and OpenRouter's search, xAI's, DashScope's, Azure's and Groq's.
var hostedFields = []string{
	"mcp_servers", "container", "prompt", "web_search_options", "plugins", "preset", "search_parameters",
	"enable_search", "enable_code_interpreter", "data_sources", "compound_custom",
}

var errHosted = errors.New("tools that the provider runs itself (web search, code execution, pictures, MCP servers) are not allowed")

// dropHosted takes hosted tools out of a request, so that an agent that offers one among its own works on. An
// error refuses a request that has nothing else, or asks for the same in another way. adds: the conversation adds tools.
func dropHosted(kind callKind, f fields) (adds, changed bool, err error) {
	for _, name := range hostedFields {
		empty := f[name].IsArray() && !f[name].Get("0").Exists() || f[name].Type == gjson.False
		if kind != generate && f.has(name) && !empty {
			return false, false, errHosted
		}
	}
	if model := strings.ToLower(f["model"].Str); strings.Contains(model+":", ":online:") || strings.Contains(model, "@preset/") { // OpenRouter's
		return false, false, errHosted
	}
	if f.has("tools") && !f["tools"].IsArray() || f["input"].IsObject() {
		return false, false, errors.New("tools and input must be lists")
	}
	local, changed := localTools(kind, f["tools"])
	if changed && len(local) == 0 {
		return false, false, errHosted
	}
	if changed {
		f.set("tools", list(local))
	}
	if kind == responses && mentions(f["input"].Raw, `"tools"`) {
		input, adding, less := withoutAdditional(f["input"])
		if adds = adding; less {
			f.set("input", list(input))
			changed = true
		}
	}
	// Messages force a tool by its name, which the provider misses then.
	if forced := f["tool_choice"]; changed && kind != messages && forced.IsObject() && hosted(kind, forced, maxDepth) {
		return false, false, errHosted
	}
	return adds, changed, nil
}

// rewritten is a list with each element as edit leaves it, without those of which nothing is left.
func rewritten(list gjson.Result, edit func(gjson.Result) string) (out []string, changed bool) {
	for entry := range elements(list) {
		raw := edit(entry)
		changed = changed || raw != entry.Raw
		if raw != "" {
			out = append(out, raw)
		}
	}
	return out, changed
}

func localTools(kind callKind, tools gjson.Result) (local []string, changed bool) {
	return rewritten(tools, func(entry gjson.Result) string {
		tool, twice := namesOf(entry)
		names := len(tool)
		if kind == generate {
			maps.DeleteFunc(tool, func(name string, _ gjson.Result) bool { return !geminiLocal[name] })
		}
		switch {
		case tool == nil, twice != "", kind != generate && hosted(kind, entry, maxDepth), len(tool) == 0 && names > 0:
			return ""
		case len(tool) < names:
			return tool.json()
		}
		return entry.Raw
	})
}

// maxDepth is how deep tools within tools, and what a conversation holds, may lie: each level is read again.
const maxDepth = 32

// hosted reports whether a tool, or one within it, is not among those that the agent runs itself.
func hosted(kind callKind, entry gjson.Result, depth int) bool {
	tool, twice := namesOf(entry)
	if tool == nil || twice != "" || depth == 0 || !forms[kind].local.MatchString(tool["type"].Str) || tool.has("type") && tool["type"].Type != gjson.String {
		return true
	}
	environment := fieldsOf(tool["environment"])
	if place := environment["type"].Str; environment != nil && place != "local" { // a shell of the provider's
		return true
	}
	for within := range elements(tool["tools"]) {
		if hosted(kind, within, depth-1) {
			return true
		}
	}
	return tool.has("tools") && !tool["tools"].IsArray()
}

// mentions reports whether one of the names may stand in JSON. To search for them takes a small part of the time of parting a
// long conversation into its fields. A name may be written with escapes: \u00, mostly a control character, though.
func mentions(raw string, names ...string) bool {
	return slices.ContainsFunc(append(names, "u00"), func(name string) bool { return strings.Contains(raw, name) })
}

// withoutAdditional takes hosted tools out of the items by which Codex adds tools within a session.
func withoutAdditional(input gjson.Result) (out []string, adds, changed bool) {
	out, changed = rewritten(input, func(entry gjson.Result) string {
		if !mentions(entry.Raw, `"tools"`) {
			return entry.Raw
		}
		item, twice := namesOf(entry)
		if twice != "" || item.has("tools") && !item["tools"].IsArray() {
			return ""
		}
		local, less := localTools(responses, item["tools"])
		adds = adds || len(local) > 0
		if !less {
			return entry.Raw
		}
		item.set("tools", list(local))
		return item.json()
	})
	return out, adds, changed
}

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

// elements goes through those of a list, and through none of what is no list. It does not gather them: in a list of
// zeros each would take forty times its bytes.
func elements(v gjson.Result) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		if v.IsArray() {
			v.ForEach(func(_, one gjson.Result) bool { return yield(one) })
		}
	}
}

// fields are those of an object by name. Of equal names the last counts, as at the providers; gjson's Get would
// give the first. Names are compared exactly: with encoding/json's structs "MODEL" would replace "model", and
// another price count.
type fields map[string]gjson.Result

func fieldsOf(v gjson.Result) fields {
	f, _ := namesOf(v)
	return f
}

// namesOf also gives a name that stands twice, "" for none.
func namesOf(v gjson.Result) (f fields, twice string) {
	if !v.IsObject() {
		return nil, ""
	}
	f = fields{}
	v.ForEach(func(name, value gjson.Result) bool {
		if _, known := f[name.Str]; known {
			twice = cmp.Or(name.Str, `""`)
		}
		f[name.Str] = value
		return true
	})
	return f, twice
}

func (f fields) has(name string) bool { return f[name].Type != gjson.Null }

func (f fields) set(name, raw string) { f[name] = gjson.Parse(raw) }

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
