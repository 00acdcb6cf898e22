package opencode

import (
	"cmp"
	"net/http"
	"regexp"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// parseLine reads one line of `opencode run --format json`. That stream has
// no final event: what its last step came to decides.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	e, part := agent.Event{Session: line.Get("sessionID").Str}, line.Get("part")
	switch line.Get("type").Str {
	case "step_start":
		e.Kind = agent.TurnStarted
	case "text":
		text := part.Get("text")
		e.Kind, e.ID, e.Text, e.Authored, e.Quotes = agent.Message, part.Get("id").Str, text.Str, text.Str, limit.Mentioned(text.Raw)
	case "reasoning":
		e.Kind, e.Quotes = agent.Thought, limit.Mentioned(part.Get("text").Raw)
	case "tool_use":
		readTool(part, &e)
	case "step_finish":
		readStep(part, &e)
	case "error":
		readError(line.Get("error"), agent.Count(line.Get("timestamp")), &e)
	default:
		return
	}
	emit(e)
}

// readTool reads a call, which is printed once it has ended.
func readTool(part gjson.Result, e *agent.Event) {
	name, state := part.Get("tool").Str, part.Get("state")
	input, answer := state.Get("input"), state.Get("output").Raw
	e.Kind, e.ID, e.Done, e.Ran = agent.ToolCall, part.Get("callID").Str, true, true
	e.Rejected = state.Get("status").Str == "error"
	e.Authored = name + " " + input.Raw
	e.Quotes = limit.Mentioned(input.Raw) || limit.Mentioned(answer)
	if e.Rejected {
		answer = state.Get("error").Raw
	}
	e.Answered(e.Rejected || agent.Count(state.Get("metadata.exit")) != 0, answer)
	if name == "patch" || name == "apply_patch" {
		e.Edits = edit.Patch(input.Get("patchText").Str)
		return
	}
	e.Edits = agent.EditTools{
		Write: []string{"write"}, Replace: []string{"edit"}, Several: []string{"multiedit"},
		Path: "filePath", Before: "oldString", After: "newString",
	}.Edits(name, input)
}

func readStep(part gjson.Result, e *agent.Event) {
	tokens := part.Get("tokens")
	cached := agent.Count(tokens.Get("cache.read"))
	e.Kind, e.Step, e.Cost = agent.StepEnded, true, agent.Dollars(part.Get("cost"))
	if e.Cost != nil && *e.Cost == 0 {
		e.Cost = nil // a model whose price it does not know
	}
	e.Tokens = &policy.Tokens{
		Input:       agent.Count(tokens.Get("input")) + agent.Count(tokens.Get("cache.write")) + cached,
		CachedInput: cached,
		Output:      agent.Count(tokens.Get("output")) + agent.Count(tokens.Get("reasoning")),
	}
	switch part.Get("reason").Str {
	case "stop":
		e.Ending = policy.Completed
	case "length":
		e.Ending = policy.CutOff
	case "content-filter":
		e.Ending = policy.NoAnswer
	case "tool-calls", "tool_calls":
	default:
		e.Ending = policy.Disconnected // the stream ended without saying why
	}
}

// readError reads an error that ended the run, with the provider's answer in it.
func readError(failure gjson.Result, stamp int64, e *agent.Event) {
	data, name := failure.Get("data"), failure.Get("name").Str
	e.Kind, e.Text = agent.Notice, cmp.Or(data.Get("message").Str, name)
	headers := http.Header{}
	if fields := data.Get("responseHeaders"); fields.IsObject() {
		fields.ForEach(func(key, value gjson.Result) bool {
			headers.Set(key.Str, value.Str)
			return true
		})
	}
	wait := time.Time{}
	if stamp != 0 {
		wait = limit.HeaderReset(headers, time.UnixMilli(stamp).UTC())
	}
	answer := limit.Read(int(agent.Count(data.Get("statusCode"))), headers, []byte(data.Get("responseBody").Str))
	e.Ending = endingOf(name, answer, e.Text, !wait.IsZero())
	if e.Ending.IsLimit() {
		e.ResetsAt = wait
	}
}

// bareRefusal is what opencode's free plan says when it is used up. A short limit
// tells how long to wait.
var bareRefusal = regexp.MustCompile(`(?i)rate limit exceeded\. please try again later\.?$`)

// endings are those of the names of opencode's errors.
var endings = map[string]policy.Ending{
	"ProviderAuthError":          policy.Auth,
	"MessageOutputLengthError":   policy.CutOff,
	"ContextOverflowError":       policy.ContextOverflow,
	"MessageAbortedError":        policy.Killed,
	"ProviderModelNotFoundError": policy.Misconfigured,
}

// endingOf names the ending of an error: by its name, by the provider's
// answer, by the text, by the HTTP status; "" where nothing tells.
func endingOf(name string, answer limit.Answer, text string, waits bool) policy.Ending {
	if ending := endings[name]; ending != "" {
		return ending
	}
	if answer.Named(policy.UsageLimit) || bareRefusal.MatchString(text) && !waits {
		return policy.UsageLimit
	}
	if ending, known := limit.Classify(text); known {
		return ending
	}
	return limit.OfStatus(answer.Status)
}

// sessions matches the sessions of opencode.
var sessions = regexp.MustCompile(`^ses_[0-9A-Za-z]{8,64}$`)

// tries are the lines of the log, which --print-logs sends to standard
// error, that tell of a refused request. The CLI waits silently after it.
var tries = regexp.MustCompile(`(?m)^ERROR\s.*\bservice=(?:llm|session\.\w+)\b.*\berror=.*$` +
	`|^timestamp=\S+ level=ERROR .*message="stream error" .*small=false .*error\.error="(?:\w+: )?(.*)"$`)

var (
	// refused matches the line of opencode's log about a refused request
	// of the agent itself, after which it waits for as long as the provider asks.
	refused = regexp.MustCompile(`\ntimestamp=\S+ level=ERROR .*message="stream error" .*session\.id=(\S+) small=false .*error\.error="(?:\w+: )?(.*)"$`)
	asks    = regexp.MustCompile(`\ntimestamp=\S+ level=INFO .*message=stream .*session\.id=(\S+) small=false`)
)

// readWait reads opencode's log. It does not name the wait, for which a
// header counts first. A long one in the provider's text is believed; after a
// short one the header may still have told a long one. After an error that is no
// limit it does not wait.
func readWait(lines string) (agent.RetryWait, bool) {
	if m := asks.FindStringSubmatch(lines); m != nil {
		return agent.RetryWait{Session: m[1], Over: true}, true
	}
	m := refused.FindStringSubmatch(lines)
	if m == nil {
		return agent.RetryWait{}, false
	}
	n, epoch := agent.RetryWait{Session: m[1], Unknown: true, Text: m[2]}, time.Unix(0, 0)
	if at, ok := relativeReset(n.Text, epoch); ok && at.Sub(epoch) > agent.LongestWait {
		n.Wait, n.Unknown = at.Sub(epoch), false
	}
	ending, _ := limit.Classify(n.Text)
	return n, ending.IsLimit()
}

// relativeReset is a reset that a text tells as a time to wait.
func relativeReset(text string, now time.Time) (time.Time, bool) {
	at, ok := limit.ResetTime(text, now, nil)
	later, again := limit.ResetTime(text, now.Add(12*time.Hour), nil)
	return at, ok && again && later.Sub(at) == 12*time.Hour
}
