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
	body   string // as sent to the provider
	size   int    // bytes at the first try
	sum    uint64 // hash of the agent's body
	model  string
	most   int64 // maximum tokens of the answer
	stream bool
	tools  bool
	// usageAdded means that the gateway requested usage and hides its chunk from the agent.
	usageAdded bool
}

// sums seeds request hashes, so that agents cannot provoke collisions.
var sums = maphash.MakeSeed()

// maxModel limits a model's name in bytes; some routers' names have eighty.
const maxModel = 256

// readRequest checks a body and prepares it. Errors are for the agent.
func readRequest(r route, body string, g Grant) (request, error) {
	out := request{body: body, size: len(body), model: r.model, stream: r.stream}
	if r.kind == models {
		return out, nil
	}
	f, err := readFields(body)
	if err != nil {
		return out, err
	}
	if r.protocol != config.Google {
		out.model = f["model"].Str
		out.stream = f["stream"].Type == gjson.True
	}
	if err := g.refusesModel(out.model); err != nil {
		return out, err
	}
	adds, changed, err := f.dropHosted(r.kind)
	if err != nil {
		return out, err
	}
	if err := f.denied(r.kind, g); err != nil {
		return out, err
	}
	if changed {
		out.body = f.json()
	}
	out.most = f.mostOutput(r.kind)
	out.tools = adds || f["tools"].Get("0").IsObject()
	if r.kind == chat && out.stream {
		out.askUsage(f)
	}
	out.size, out.sum = len(out.body), maphash.String(sums, body)
	return out, nil
}

func readFields(body string) (fields, error) {
	whole, ok := parsed(body)
	f, twice := namesOf(whole)
	if !ok || f == nil {
		return nil, errors.New("the body is not a JSON object")
	}
	if twice != "" { // the provider may read the other value
		return nil, fmt.Errorf("%.80q appears twice in the body: send it once", twice)
	}
	return f, nil
}

func (g Grant) refusesModel(model string) error {
	if len(model) > maxModel {
		return fmt.Errorf("the name of the model is longer than %d bytes", maxModel)
	}
	if !g.allows(model) {
		return fmt.Errorf("the model %.80q is not allowed here: use %s; the operator can allow other models with the backend's side_models", model, g.Model)
	}
	return nil
}

func (r *request) askUsage(f fields) {
	if f["stream_options"].Get("include_usage").Type == gjson.True {
		return
	}
	asked, err := sjson.Set(r.body, "stream_options.include_usage", true)
	if err != nil {
		return // no provider accepts such a request
	}
	r.body, r.usageAdded = asked, true
}

// mostOutput returns the maximum tokens of all answers to a request.
func (f fields) mostOutput(kind callKind) int64 {
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

// Limits of reservations: no model answers with a million tokens, no provider with more than 128 answers.
const (
	maxOutput  = 1 << 20
	maxAnswers = 128
)

type object map[string]any

// manyBrackets limits opening brackets for gjson, which recurses at each and may overflow the stack. Texts with more go
// to encoding/json, which is four times slower.
const manyBrackets = 1 << 16

// parsed parses the whole text, because gjson and a provider could read broken JSON differently.
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

// elements iterates over a list without collecting it, which would take forty times its bytes.
func elements(v gjson.Result) iter.Seq[gjson.Result] {
	return func(yield func(gjson.Result) bool) {
		if v.IsArray() {
			v.ForEach(func(_, one gjson.Result) bool { return yield(one) })
		}
	}
}

// fields maps an object's fields. The last of equal names counts, as providers read them. Names are exact:
// encoding/json would read "MODEL" as "model".
type fields map[string]gjson.Result

func fieldsOf(v gjson.Result) fields {
	f, _ := namesOf(v)
	return f
}

// namesOf returns an object's fields, and a repeated name or an empty string.
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

// distinct returns an object's fields, or false for repeated names and other values.
func distinct(v gjson.Result) (fields, bool) {
	f, twice := namesOf(v)
	return f, f != nil && twice == ""
}

func (f fields) mayList(name string) bool { return !f.has(name) || f[name].IsArray() }

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

// encoded writes JSON without escaping < and >. The value must marshal.
func encoded(v any) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	return strings.TrimRight(b.String(), "\n")
}

// maxCount exceeds any call's tokens.
const maxCount = 1 << 40

// count returns a number of tokens, clamped so that no answer lowers a total. Other values are 0.
func count(v gjson.Result) int64 {
	if v.Type != gjson.Number {
		return 0
	}
	return int64(min(max(v.Num, 0), maxCount))
}
