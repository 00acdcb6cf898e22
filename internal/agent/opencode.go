package agent

import (
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// opencodeLine reads one line of `opencode run --format json`. That stream has
// no final event: what its last step came to decides.
func opencodeLine(line []byte, emit func(Event)) {
	var kind, session, stamp, part, failure []byte
	members(line, func(key, value []byte) {
		switch string(key) {
		case "type":
			kind = value
		case "sessionID":
			session = value
		case "timestamp":
			stamp = value
		case "part":
			part = value
		case "error":
			failure = value
		}
	})
	e := Event{Session: stringOf(session)}
	switch string(bare(kind)) {
	case "step_start":
		e.Kind = TurnStarted
	case "text":
		raw := member(part, "text")
		e.Kind, e.ID, e.Text, e.Quotes = Message, stringOf(member(part, "id")), stringOf(raw), quotesLimit(raw)
		e.Wrote = e.Text
	case "reasoning":
		e.Kind, e.Quotes = Thought, quotesLimit(member(part, "text"))
	case "tool_use":
		opencodeTool(part, &e)
	case "step_finish":
		opencodeStep(part, &e)
	case "error":
		opencodeError(failure, intOf(stamp), &e)
	default:
		return
	}
	emit(e)
}

// opencodeTool reads a call, which is printed once it has ended.
func opencodeTool(part []byte, e *Event) {
	name, state := stringOf(member(part, "tool")), member(part, "state")
	input := member(state, "input")
	e.Kind, e.ID, e.Done, e.Ran = ToolCall, stringOf(member(part, "callID")), true, true
	e.Rejected = string(bare(member(state, "status"))) == "error"
	e.Wrote = name + " " + string(input)
	e.Quotes = quotesLimit(input) || quotesLimit(member(state, "output"))
	answer := member(state, "output")
	if e.Rejected {
		answer = member(state, "error")
	}
	e.fail(e.Rejected || intOf(member(member(state, "metadata"), "exit")) != 0, answer)
	path := stringOf(member(input, "filePath"))
	switch {
	case name == "patch", name == "apply_patch":
		e.Edits = patchEdits(stringOf(member(input, "patchText")))
	case path == "":
	case name == "write":
		e.Edits = []Edit{written(path, stringOf(member(input, "content")))}
	case name == "edit":
		e.Edits = []Edit{replaced(path, stringOf(member(input, "oldString")), stringOf(member(input, "newString")))}
	case name == "multiedit":
		e.Edits = []Edit{severalEdits(path, member(input, "edits"), "oldString", "newString")}
	}
}

func opencodeStep(part []byte, e *Event) {
	tokens := member(part, "tokens")
	cache := member(tokens, "cache")
	cached := intOf(member(cache, "read"))
	e.Kind, e.Step, e.Cost = StepEnded, true, floatOf(member(part, "cost"))
	if e.Cost != nil && *e.Cost == 0 {
		e.Cost = nil // a model whose price it does not know
	}
	e.Tokens = &Tokens{
		Input:       intOf(member(tokens, "input")) + intOf(member(cache, "write")) + cached,
		CachedInput: cached,
		Output:      intOf(member(tokens, "output")) + intOf(member(tokens, "reasoning")),
	}
	switch string(bare(member(part, "reason"))) {
	case "stop":
		e.Ending = Completed
	case "length":
		e.Ending = CutOff
	case "content-filter":
		e.Ending = NoAnswer
	case "tool-calls", "tool_calls":
	default:
		e.Ending = Disconnected // the stream ended without saying why
	}
}

// opencodeError reads an error that ended the run, with the provider's answer in it.
func opencodeError(failure []byte, stamp int64, e *Event) {
	data := member(failure, "data")
	name, status := stringOf(member(failure, "name")), int(intOf(member(data, "statusCode")))
	e.Kind, e.Text = Notice, stringOf(member(data, "message"))
	if e.Text == "" {
		e.Text = name
	}
	wait, waits := retryAfter(member(data, "responseHeaders"), stamp)
	e.Ending = opencodeEnding(name, status, stringOf(member(data, "responseBody")), e.Text, waits)
	if waits && e.Ending.isLimit() {
		e.ResetsAt = &wait
	}
}

var (
	// freeLimits are the error types of opencode's own gateway for used-up
	// plans, whose messages say only "Rate limit exceeded".
	freeLimits = regexp.MustCompile(`(?i)"(?:type|code)"\s*:\s*"(?:\w*UsageLimit\w*|\w*usage_limit\w*|\w*MonthlyLimit\w*|CreditsError|insufficient_quota|insufficient_credits)"`)
	bareRefuse = regexp.MustCompile(`(?i)rate limit exceeded\. please try again later\.?$`)
)

// opencodeEnding names the ending of an error: by its name, by the provider's
// answer, by the text, by the HTTP status; "" where nothing tells.
func opencodeEnding(name string, status int, body, text string, waits bool) Ending {
	switch name {
	case "ProviderAuthError":
		return Auth
	case "MessageOutputLengthError":
		return CutOff
	case "ContextOverflowError":
		return ContextOverflow
	case "MessageAbortedError":
		return Killed
	case "ProviderModelNotFoundError":
		return Misconfigured
	}
	if freeLimits.MatchString(body) || bareRefuse.MatchString(text) && !waits {
		return UsageLimit
	}
	if ending, known := classifyFailure(text); known {
		return ending
	}
	return statusEnding(status)
}

// retryAfter reads when the provider will listen again from the headers of its
// answer, received at a unix time in milliseconds.
func retryAfter(headers []byte, stamp int64) (time.Time, bool) {
	var after, afterMillis string
	members(headers, func(key, value []byte) {
		switch strings.ToLower(string(key)) {
		case "retry-after":
			after = stringOf(value)
		case "retry-after-ms":
			afterMillis = stringOf(value)
		}
	})
	received := time.UnixMilli(stamp).UTC()
	if at, err := http.ParseTime(after); err == nil {
		return at.UTC(), true
	}
	if stamp == 0 {
		return time.Time{}, false
	}
	if ms, err := strconv.ParseFloat(afterMillis, 64); err == nil {
		return ahead(received, ms/1000)
	}
	if s, err := strconv.ParseFloat(after, 64); err == nil {
		return ahead(received, s)
	}
	return time.Time{}, false
}

// opencodeSession matches its sessions.
var opencodeSession = regexp.MustCompile(`^ses_[0-9A-Za-z]{8,64}$`)

// opencodeTries are the lines of the log, which --print-logs sends to standard
// error, that tell of a refused request. The CLI waits silently after it.
var opencodeTries = regexp.MustCompile(`(?m)^ERROR\s.*\bservice=(?:llm|session\.\w+)\b.*\berror=.*$` +
	`|^timestamp=\S+ level=ERROR .*message="stream error" .*small=false .*error\.error="(?:\w+: )?(.*)"$`)
