package agent

import "regexp"

// geminiLine reads one line of `gemini --output-format stream-json`.
func geminiLine(line []byte, emit func(Event)) {
	switch string(bare(member(line, "type"))) {
	case "init":
		emit(Event{Kind: SessionStarted, ID: stringOf(member(line, "session_id"))})
	case "message":
		if string(bare(member(line, "role"))) != "assistant" {
			emit(Event{Kind: TurnStarted})
			return
		}
		raw := member(line, "content")
		text := stringOf(raw)
		emit(Event{Kind: Message, Text: text, Wrote: text, Quotes: quotesLimit(raw), Delta: string(member(line, "delta")) == "true"})
	case "tool_use":
		name, input := stringOf(member(line, "tool_name")), member(line, "parameters")
		e := Event{Kind: ToolCall, ID: stringOf(member(line, "tool_id")), Wrote: name + " " + string(input), Ran: true, Quotes: quotesLimit(input)}
		switch p := stringOf(member(input, "file_path")); {
		case p == "":
		case name == "write_file":
			e.Edits = []Edit{written(p, stringOf(member(input, "content")))}
		case name == "replace", name == "edit":
			e.Edits = []Edit{replaced(p, stringOf(member(input, "old_string")), stringOf(member(input, "new_string")))}
		}
		emit(e)
	case "tool_result":
		output := member(line, "output")
		e := Event{Kind: ToolCall, ID: stringOf(member(line, "tool_id")), Done: true,
			Rejected: string(bare(member(line, "status"))) == "error", Quotes: quotesLimit(output)}
		e.fail(e.Rejected, output)
		emit(e)
	case "error":
		geminiNotice(line, emit)
	case "result":
		geminiResult(line, emit)
	}
}

// geminiNotice reads an error event. The CLI prints one before a result that
// does not repeat it. Warnings matter only where they tell of an ending.
func geminiNotice(line []byte, emit func(Event)) {
	e := Event{Kind: Notice, Text: stringOf(member(line, "message"))}
	ending, known := classifyFailure(e.Text)
	if known {
		e.Ending = ending
	} else if string(bare(member(line, "severity"))) == "warning" {
		return
	}
	emit(e)
}

// geminiEnding names the ending of an error type; most errors have the type "unknown".
func geminiEnding(kind string) Ending {
	switch kind {
	case "FatalAuthenticationError":
		return Auth
	case "FatalInputError", "FatalConfigError", "FatalSandboxError":
		return Misconfigured
	case "FatalTurnLimitedError":
		return TurnLimit
	case "FatalCancellationError":
		return Killed
	}
	return ""
}

func geminiResult(line []byte, emit func(Event)) {
	stats, failure := member(line, "stats"), member(line, "error")
	e := Event{Kind: Finished}
	if stats != nil {
		e.Tokens = &Tokens{Input: intOf(member(stats, "input_tokens")), CachedInput: intOf(member(stats, "cached")), Output: intOf(member(stats, "output_tokens"))}
	}
	if failure != nil || string(bare(member(line, "status"))) != "success" {
		e.Kind, e.Text = Failed, stringOf(member(failure, "message"))
		e.Ending = geminiEnding(stringOf(member(failure, "type")))
	}
	emit(e)
}

// geminiTries are the lines on standard error that tell of a failed try. While
// the CLI waits for the next one, which can take as long as the provider asks
// for, it prints nothing else.
var geminiTries = regexp.MustCompile(`(?m)^Attempt \d+ failed.*(?:\nSuggested retry after .*)?$`)

// geminiExit names the ending of an exit code: one of the CLI's own, or for a
// refusal of the API the HTTP status modulo 256.
func geminiExit(code int) Ending {
	switch code {
	case 41:
		return Auth
	case 42, 44, 52:
		return Misconfigured
	case 53:
		return TurnLimit
	case 529 % 256:
		return statusEnding(529)
	}
	if code >= 400%256 && code <= 504%256 {
		return statusEnding(code + 256)
	}
	return ""
}
