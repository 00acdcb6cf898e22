package limit

import (
	"cmp"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
)

// Place is where a refusal was seen.
type Place int

const (
	// Stream is a text that is known to be an error: a field of a stream, a line of a log, standard error.
	Stream Place = iota
	// Gateway is the provider's own answer.
	Gateway
	// Plain is a line of output that may be anything. Only a line that is nothing but a refusal counts.
	Plain
)

// Evidence is what is known of one refusal. Every field may be zero.
type Evidence struct {
	Seen Place
	// Kind is what the fields of a CLI name for certain. Words about a used-up plan outrank a lesser limit.
	Kind     policy.Ending
	Status   int      // of HTTP
	Names    []string // type, code, status and reasons of the error, as the provider or the CLI spells them
	Message  string   // may hold the provider's answer as JSON
	Header   http.Header
	ResetsAt time.Time // told by a field
	Now      time.Time
	Zone     *time.Location // of clock times without a zone; nil means UTC

	foreign bool         // a page of a proxy or CDN instead of the API's answer
	body    gjson.Result // the error, which exists where the answer is JSON
	own     string       // the provider's own words, where they are a part of the message
	field   bool         // the status or a name was a field, and not read from the text
}

// Answer is the evidence of an error body that a provider sent, or of the error of a stream (status 0, no header).
func Answer(status int, header http.Header, body []byte) Evidence {
	e := Evidence{
		Seen:   Gateway,
		Status: status,
		Header: header,
	}
	if !gjson.ValidBytes(body) {
		e.Message = render.Block(string(body), maxMessage)
		e.foreign = strings.HasPrefix(e.Message, "<")
		if e.foreign {
			e.Message = "an answer that is not the API's (HTML)"
		}
		return e
	}
	e.take(gjson.ParseBytes(body))
	e.Message = e.own
	return e
}

// Foreign reports whether a page came instead of the API's answer: a proxy's sign-in, a CDN's challenge, a dead
// gateway's error. It tells that the provider is out of reach, and nothing of the account or its load.
func (e Evidence) Foreign() bool { return e.foreign && e.Status != http.StatusTooManyRequests }

// take adds what an error as JSON tells. The inner error of a router or of a message that is JSON counts, too.
func (e *Evidence) take(answer gjson.Result) {
	const layers = 4
	for range layers {
		failure := errorOf(answer)
		if failure.Type == gjson.String { // some servers say only a sentence
			e.own = cmp.Or(failure.String(), e.own)
			return
		}
		if !failure.IsObject() {
			return
		}
		if !e.body.Exists() {
			e.body = failure
		}
		e.Status = cmp.Or(e.Status, statusOf(failure))
		e.Names = append(e.Names, namesOf(failure)...)
		message := cmp.Or(failure.Get("message").String(), failure.Get("detail").String())
		e.own = cmp.Or(message, e.own)
		raw := failure.Get("metadata.raw").String() // OpenRouter repeats what the model's provider said
		inner := gjson.Parse(jsonIn(cmp.Or(raw, message)))
		if !inner.IsObject() {
			if raw != "" {
				e.own += "\n" + raw
			}
			return
		}
		answer = inner
	}
}

// errorOf finds the error in a body. Google wraps those of some streams in a list.
func errorOf(e gjson.Result) gjson.Result {
	if e.IsArray() {
		e = e.Get("0")
	}
	for _, name := range []string{"error", "response.error", "base_resp"} {
		if inner := e.Get(name); inner.Type != gjson.Null {
			return inner
		}
	}
	return e
}

// statusOf is the status of HTTP that an error names as its code, 0 for none.
func statusOf(e gjson.Result) int {
	n, _ := strconv.Atoi(e.Get("code").String()) // 0 for words
	switch n / 100 {
	case 4, 5:
		return n
	}
	return 0
}

func namesOf(e gjson.Result) (names []string) {
	fields := e.Get("details.#.reason").Array()
	for _, field := range []string{"type", "code", "status", "__type", "status_msg"} {
		fields = append(fields, e.Get(field))
	}
	for _, name := range fields {
		if name.String() != "" {
			names = append(names, name.String())
		}
	}
	return names
}

var (
	// bodyStart matches where a provider's answer begins within a message.
	bodyStart  = regexp.MustCompile(`\[?\s*\{\s*"`)
	httpStatus = regexp.MustCompile(`(?i)(?:unexpected status|last status:|api error:(?: request rejected \()?|"(?:status_?)?code"\s*:|(?:status|response)(?:[ _-]?code)?["']?[:=]?|error code:|(?:returned|responded with|answered|received|got)(?: an?)?(?: http)?(?: error)?|http(?:/\d(?:\.\d)?)?|^\[?(?:error:? )?)\s*([45]\d\d)\b`)
)

// jsonIn is the JSON that a message holds, empty for none. It may be cut at its end.
func jsonIn(message string) string {
	at := bodyStart.FindStringIndex(message)
	if at == nil {
		return ""
	}
	return message[at[0]:]
}

// structured reports whether the evidence is more than a text.
func (e Evidence) structured() bool {
	if e.Seen == Gateway {
		return true
	}
	if e.Kind != "" {
		return true
	}
	if len(e.Names) > 0 {
		return true
	}
	return e.Status != 0
}

// unwrapped adds what the text of the message tells: the answer that a CLI repeats, a status in words.
func (e Evidence) unwrapped() Evidence {
	e.field = e.structured()
	e.Names = slices.Clone(e.Names)
	if e.own == "" {
		e.take(gjson.Parse(jsonIn(e.Message)))
	}
	if e.Status == 0 {
		if m := httpStatus.FindStringSubmatch(e.Message); m != nil {
			e.Status, _ = strconv.Atoi(m[1])
		}
	}
	e.own = wrapper.ReplaceAllString(cmp.Or(e.own, e.Message), "")
	if m := class.FindStringSubmatch(e.own); m != nil {
		e.Names = append(e.Names, m[1])
	}
	return e
}

var (
	// wrapper is what codex writes in front of a provider's answer.
	wrapper = regexp.MustCompile(`(?i)\bunexpected status [45]\d\d(?: [\w ]*)?:\s*`)
	// class is the exception of an SDK in front of its message, a name of the error as a field would be.
	class = regexp.MustCompile(`^[^\pL\pN{]*(?:(?:API )?Error:?\s+)?(?:[\w.]+\.)?(\w+(?:Error|Exception|Exhausted)):\s`)
)
