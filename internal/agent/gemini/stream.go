package gemini

import (
	"regexp"
	"strconv"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

// parseLine reads one line of `gemini --output-format stream-json`.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	switch line.Get("type").Str {
	case "init":
		emit(agent.Event{Kind: agent.SessionStarted, ID: line.Get("session_id").Str})
	case "message":
		if line.Get("role").Str != "assistant" {
			emit(agent.Event{Kind: agent.TurnStarted})
			return
		}
		text := line.Get("content")
		emit(agent.Event{Kind: agent.Message, Text: text.Str, Authored: text.Str, Quotes: limit.Mentioned(text.Raw), Delta: line.Get("delta").Bool()})
	case "tool_use":
		name, input := line.Get("tool_name").Str, line.Get("parameters")
		emit(agent.Event{Kind: agent.ToolCall, ID: line.Get("tool_id").Str, Authored: name + " " + input.Raw, Ran: true,
			Quotes: limit.Mentioned(input.Raw), Edits: editTools.Edits(name, input)})
	case "tool_result":
		output := line.Get("output").Raw
		e := agent.Event{Kind: agent.ToolCall, ID: line.Get("tool_id").Str, Done: true,
			Rejected: line.Get("status").Str == "error", Quotes: limit.Mentioned(output)}
		e.Answered(e.Rejected, output)
		emit(e)
	case "error":
		readNotice(line, emit)
	case "result":
		emit(readResult(line))
	}
}

var editTools = agent.EditTools{
	Write: []string{"write_file"}, Replace: []string{"replace", "edit"},
	Path: "file_path", Before: "old_string", After: "new_string",
}

// readNotice reads an error event. The CLI prints one before a result that
// does not repeat it. Warnings matter only where they tell of an ending.
func readNotice(line gjson.Result, emit func(agent.Event)) {
	e := agent.Event{Kind: agent.Notice, Text: line.Get("message").Str}
	ending, known := limit.Classify(e.Text)
	if known {
		e.Ending = ending
	} else if line.Get("severity").Str == "warning" {
		return
	}
	emit(e)
}

// endings are those of the types of errors; most errors have the type "unknown".
var endings = map[string]policy.Ending{
	"FatalAuthenticationError": policy.Auth,
	"FatalInputError":          policy.Misconfigured,
	"FatalConfigError":         policy.Misconfigured,
	"FatalSandboxError":        policy.Misconfigured,
	"FatalTurnLimitedError":    policy.TurnLimit,
	"FatalCancellationError":   policy.Killed,
}

func readResult(line gjson.Result) agent.Event {
	failure := line.Get("error")
	e := agent.Event{Kind: agent.Finished, Tokens: agent.Tokens(line.Get("stats"), "input_tokens", "cached", "output_tokens")}
	if failure.Exists() || line.Get("status").Str != "success" {
		e.Kind, e.Text, e.Ending = agent.Failed, failure.Get("message").Str, endings[failure.Get("type").Str]
	}
	return e
}

// tries are the lines on standard error that tell of a failed try. While
// the CLI waits for the next one, which can take as long as the provider asks
// for, it prints nothing else.
var tries = regexp.MustCompile(`(?m)^Attempt \d+ failed.*(?:\nSuggested retry after .*)?$`)

// exits are the endings of the CLI's own exit codes.
var exits = map[int]policy.Ending{
	41: policy.Auth, 42: policy.Misconfigured, 44: policy.Misconfigured, 52: policy.Misconfigured, 53: policy.TurnLimit,
}

// exitEnding names the ending of an exit code: one of the CLI's own, or for a
// refusal of the API the HTTP status modulo 256.
func exitEnding(code int) policy.Ending {
	switch {
	case code == 529%256:
		return limit.OfStatus(529)
	case code >= 400%256 && code <= 504%256:
		return limit.OfStatus(code + 256)
	}
	return exits[code]
}

// sleeps matches what gemini says of a failed try and of the wait before
// the next, jitter included, in milliseconds.
var sleeps = regexp.MustCompile(`(?:^|\n)(Attempt \d+ failed\b.*(?:\nSuggested retry after .*)?) Retrying after (\d{1,12})ms\.{3}$`)

func readWait(lines string) (agent.RetryWait, bool) {
	m := sleeps.FindStringSubmatch(lines)
	if m == nil {
		return agent.RetryWait{}, false
	}
	ms, err := strconv.ParseInt(m[2], 10, 64)
	return agent.RetryWait{Wait: time.Duration(ms) * time.Millisecond, Text: m[1]}, err == nil
}
