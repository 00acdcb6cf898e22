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

// Place is a refusal's source.
type Place int

const (
	// Stream is an error's text: a stream's field, a log line, standard error.
	Stream Place = iota
	// Gateway is the provider's answer.
	Gateway
	// Plain is a line of output. It counts only if it is nothing but a refusal.
	Plain
)

// Evidence has the known data of one refusal. All fields are optional.
type Evidence struct {
	Seen Place
	// Kind is the kind that a CLI's fields prove. Words about an exhausted plan override a lesser limit.
	Kind     policy.Ending
	Status   int      // HTTP status
	Names    []string // the error's type, code, status and reasons, in the provider's or CLI's spelling
	Message  string   // may contain the provider's answer as JSON
	Header   http.Header
	ResetsAt time.Time // from a field
	Now      time.Time
	Zone     *time.Location // of clock times without a zone; nil means UTC

	foreign bool         // a proxy's or CDN's page instead of the API's answer
	body    gjson.Result // the error, if JSON
	own     string       // the provider's words in the message
	field   bool         // the status or a name comes from a field, not the text
}

// Answer returns the evidence of a provider's error body, or of a stream's error (status 0, no header).
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

// Foreign reports whether a page replaced the API's answer: a proxy's sign-in, a CDN's challenge, a gateway's error.
// Such a page says nothing about the account or the provider's load.
func (e Evidence) Foreign() bool { return e.foreign && e.Status != http.StatusTooManyRequests }

// take adds the data of an error's JSON and of its inner error: a router's, or a message that is JSON.
func (e *Evidence) take(answer gjson.Result) {
	const layers = 4
	for range layers {
		failure := errorOf(answer)
		if failure.Type == gjson.String { // some servers send only a sentence
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
		raw := failure.Get("metadata.raw").String() // OpenRouter repeats the model provider's answer
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

// errorOf finds the error in a body. Google wraps some streams' errors in a list.
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
	// bodyStart matches the start of a provider's answer in a message.
	bodyStart  = regexp.MustCompile(`\[?\s*\{\s*"`)
	httpStatus = regexp.MustCompile(`(?i)(?:unexpected status|last status:|api error:(?: request rejected \()?|"(?:status_?)?code"\s*:|(?:status|response)(?:[ _-]?code)?["']?[:=]?|error code:|(?:returned|responded with|answered|received|got)(?: an?)?(?: http)?(?: error)?|http(?:/\d(?:\.\d)?)?|^\[?(?:error:? )?)\s*([45]\d\d)\b`)
)

func jsonIn(message string) string {
	at := bodyStart.FindStringIndex(message)
	if at == nil {
		return ""
	}
	return message[at[0]:]
}

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

// unwrapped adds data from the message's text: a repeated answer, a status in words.
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
	// wrapper matches codex's text before a provider's answer.
	wrapper = regexp.MustCompile(`(?i)\bunexpected status [45]\d\d(?: [\w ]*)?:\s*`)
	// class matches an SDK's exception before its message. It counts as an error's name.
	class = regexp.MustCompile(`^[^\pL\pN{]*(?:(?:API )?Error:?\s+)?(?:[\w.]+\.)?(\w+(?:Error|Exception|Exhausted)):\s`)
)
