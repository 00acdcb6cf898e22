// Package opencode starts opencode and parses its output.
package opencode

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"path"
	"regexp"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/edit"
	"github.com/pawlbot/pawl/internal/limit"
	"github.com/pawlbot/pawl/policy"
)

var Adapter = agent.Adapter{
	Sessions:   sessions,
	Build:      build,
	Parse:      parseLine,
	Wrote:      wrote,
	ReadTry:    readTry,
	Credential: ".local/share/opencode/auth.json",
	// opencode's second configuration service imports these files' plugins, despite --pure and
	// OPENCODE_DISABLE_PROJECT_CONFIG.
	Unguarded: []string{".opencode", "opencode.json", "opencode.jsonc"},
}

func wrote(line gjson.Result) bool {
	return line.Get("type").Str == "step_start" || line.Get("sessionID").Exists() || line.Get("part").Exists()
}

// build returns `opencode run` as in the recorded runs of 1.18.33. It has every permission, since Pawl's sandbox
// contains it, and ignores the repository's configuration. Its log on standard error reports refused requests.
func build(r agent.Request) (agent.Launch, error) {
	model, err := modelOf(r)
	if err != nil {
		return agent.Launch{}, err
	}
	args := []string{
		"run", "--format", "json", "--pure",
		"--print-logs", "--log-level", "INFO",
		"--title", "pawl",
		"--model=" + model,
	}
	args = agent.With(args, "--session=", r.Session)
	args = agent.With(args, "--variant=", r.Effort)
	args = agent.With(args, "--file=", r.Pictures...)
	env := r.Endpoint.OnlyToken()
	maps.Copy(env, map[string]string{
		"XDG_CONFIG_HOME": path.Join(r.Home, ".config"),
		"XDG_DATA_HOME":   path.Join(r.Home, ".local/share"),
		"XDG_STATE_HOME":  path.Join(r.Home, ".local/state"),
		"XDG_CACHE_HOME":  path.Join(r.Home, ".cache"),
	})
	for _, name := range []string{
		"PROJECT_CONFIG", "DEFAULT_PLUGINS", "EXTERNAL_SKILLS", "CLAUDE_CODE",
		"MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "SHARE",
	} {
		env["OPENCODE_DISABLE_"+name] = "1"
	}
	return agent.Launch{
		Args: args,
		Env:  env,
		Files: map[string]string{
			configDir + "opencode.json": configOf(r, model),
			// These two files make opencode 1.18 treat its plugin library as installed. Otherwise it asks the npm
			// registry at each start.
			configDir + "node_modules/.keep": "",
			configDir + "package-lock.json":  `{"packages":{"":{"dependencies":{"@opencode-ai/plugin":""}}}}`,
		},
	}, nil
}

const (
	provider  = "pawl"
	configDir = ".config/opencode/"
)

func modelOf(r agent.Request) (string, error) {
	switch {
	case r.Model == "":
		return "", fmt.Errorf("opencode needs a model: set the backend's model")
	case r.Endpoint != agent.Endpoint{}:
		return provider + "/" + r.Model, nil
	case !strings.Contains(r.Model, "/"):
		return "", fmt.Errorf("opencode needs its provider before the model %q: set the backend's model to PROVIDER/%[1]s, or give the backend a provider", r.Model)
	}
	return r.Model, nil
}

// Token limits of the endpoint's model. opencode compacts a session before the context is full; without an output limit
// it asks for impossible thinking budgets. Every agent's model has this much room; 32,000 is opencode's cap.
const (
	contextRoom = 200_000
	outputRoom  = 32_000
)

// modelConfig describes the endpoint's model. opencode ignores an effort without a variant, so the OpenAI protocol gets
// one. For other protocols, the model's name decides.
func modelConfig(r agent.Request) map[string]any {
	model := map[string]any{
		"tool_call": true, "reasoning": true,
		"limit": map[string]any{"context": contextRoom, "output": outputRoom},
	}
	if len(r.Pictures) > 0 { // otherwise opencode omits them, with a note to the model
		model["attachment"] = true
		model["modalities"] = map[string]any{
			"input":  []string{"text", "image"},
			"output": []string{"text"},
		}
	}
	if r.Effort != "" && r.Endpoint.Protocol == config.OpenAI {
		model["variants"] = map[string]any{r.Effort: map[string]any{"reasoningEffort": r.Effort}}
	}
	return model
}

// configOf returns the whole configuration file. It names the token's variable, but not the token.
func configOf(r agent.Request, model string) string {
	settings := map[string]any{
		"$schema":     "https://opencode.ai/config.json",
		"share":       "disabled",
		"autoupdate":  false,
		"snapshot":    false,
		"model":       model,
		"small_model": model,
		"permission":  "allow",
	}
	if r.Endpoint != (agent.Endpoint{}) {
		sdk, base := "@ai-sdk/openai-compatible", r.Endpoint.URL+"/v1"
		switch r.Endpoint.Protocol {
		case config.Anthropic:
			sdk = "@ai-sdk/anthropic"
		case config.Google:
			sdk, base = "@ai-sdk/google", r.Endpoint.URL+"/v1beta"
		}
		settings["enabled_providers"] = []string{provider}
		settings["provider"] = map[string]any{provider: map[string]any{
			"npm":  sdk,
			"name": provider,
			"options": map[string]any{
				"baseURL": base,
				"apiKey":  "{env:" + agent.TokenVariable + "}",
			},
			"models": map[string]any{r.Model: modelConfig(r)},
		}}
	}
	if len(r.TestTool) > 0 {
		settings["mcp"] = map[string]any{agent.ToolServer: map[string]any{
			"type":    "local",
			"command": r.TestTool,
			"enabled": true,
			"timeout": agent.ToolTimeout.Milliseconds(),
		}}
	}
	return agent.Settings(settings)
}

// parseLine parses a line of `opencode run --format json`. There is no final event: the last step decides.
func parseLine(raw []byte, emit func(agent.Event)) {
	line := agent.Line(raw)
	e, part := agent.Event{Session: line.Get("sessionID").Str}, line.Get("part")
	switch line.Get("type").Str {
	case "step_start":
		e.Kind = agent.TurnStarted
	case "text":
		text := part.Get("text")
		e.Kind = agent.Message
		e.ID = part.Get("id").Str
		e.Text = text.Str
		e.Authored = text.Str
		e.Quotes = limit.Mentioned(text.Raw)
	case "reasoning":
		e.Kind = agent.Thought
		e.Quotes = limit.Mentioned(part.Get("text").Raw)
	case "tool_use":
		readTool(part, &e)
	case "step_finish":
		if !gjson.Valid(line.Raw) || !part.Get("reason").Exists() {
			return // the step's end is unknown
		}
		readStep(part, &e)
	case "error":
		readError(line.Get("error"), agent.Count(line.Get("timestamp")), &e)
	default:
		return
	}
	emit(e)
}

// readTool parses a call. Most versions print only ended calls.
func readTool(part gjson.Result, e *agent.Event) {
	name, state := part.Get("tool").Str, part.Get("state")
	input, answer := state.Get("input"), state.Get("output").Raw
	e.Kind = agent.ToolCall
	e.ID = part.Get("callID").Str
	if at := part.Get("id").Str; at != "" {
		e.Place = part.Get("messageID").Str + " " + at
	}
	e.Ran = true
	e.Authored = name + " " + input.Raw
	e.Does = agent.Does(name, input)
	switch state.Get("status").Str {
	case "completed":
		e.Done = true
	case "error":
		e.Done, e.Rejected = true, true
		answer = state.Get("error").Raw
	}
	e.Quotes = limit.Mentioned(input.Raw, state.Get("output").Raw)
	e.Whole = e.Done
	e.Began = agent.Milliseconds(state.Get("time.start"))
	if e.Done {
		e.Answered(e.Rejected || agent.Count(state.Get("metadata.exit")) != 0, answer)
	}
	switch name {
	case "patch", "apply_patch":
		e.Edits = edit.Patch(input.Get("patchText").Str)
	default:
		e.Edits = editTools.Edits(name, input)
	}
}

var editTools = agent.EditTools{
	Write:   []string{"write"},
	Replace: []string{"edit"},
	Several: []string{"multiedit"},
	Path:    "filePath",
	Before:  "oldString",
	After:   "newString",
}

func readStep(part gjson.Result, e *agent.Event) {
	tokens := part.Get("tokens")
	cached := agent.Count(tokens.Get("cache.read"))
	e.Kind = agent.StepEnded
	e.Step = true
	e.Cost = agent.Dollars(part.Get("cost"))
	if e.Cost != nil && *e.Cost == 0 {
		e.Cost = nil // unknown price
	}
	e.Tokens = agent.Reported(policy.Tokens{
		Input:       agent.Count(tokens.Get("input")) + agent.Count(tokens.Get("cache.write")) + cached,
		CachedInput: cached,
		Output:      agent.Count(tokens.Get("output")) + agent.Count(tokens.Get("reasoning")),
	})
	switch part.Get("reason").Str {
	case "stop":
		e.Ending = policy.Completed
	case "length":
		e.Ending = policy.CutOff
	case "content-filter":
		e.Ending = policy.NoAnswer
	case "tool-calls", "tool_calls":
	default:
		e.Ending = policy.Disconnected // the stream ended without a reason
	}
}

// readError parses an error that ended the run, with the provider's answer.
func readError(failure gjson.Result, stamp int64, e *agent.Event) {
	data, name := failure.Get("data"), failure.Get("name").Str
	e.Kind = agent.Notice
	e.Text = cmp.Or(data.Get("message").Str, name)
	headers := headersOf(data.Get("responseHeaders"))
	wait := time.Time{}
	if stamp != 0 {
		wait = limit.HeaderReset(headers, time.UnixMilli(stamp).UTC())
	}
	answer := limit.Answer(int(agent.Count(data.Get("statusCode"))), headers, []byte(data.Get("responseBody").Str))
	e.Status, e.Names, e.ResetsAt = answer.Status, answer.Names, wait
	e.Ending = endings[name]
}

func headersOf(fields gjson.Result) http.Header {
	headers := http.Header{}
	if !fields.IsObject() {
		return headers
	}
	fields.ForEach(func(key, value gjson.Result) bool {
		headers.Set(key.Str, value.Str)
		return true
	})
	return headers
}

var endings = map[string]policy.Ending{
	"ProviderAuthError":          policy.Auth,
	"MessageOutputLengthError":   policy.CutOff,
	"ContextOverflowError":       policy.ContextOverflow,
	"MessageAbortedError":        policy.Killed,
	"ProviderModelNotFoundError": policy.Misconfigured,
}

var sessions = regexp.MustCompile(`^ses_[0-9A-Za-z]{8,64}$`)

var (
	// refused matches the agent's refused request in the log (--print-logs). opencode then waits silently for as long
	// as the provider asks.
	refused = regexp.MustCompile(`\ntimestamp=\S+ level=ERROR .*message="stream error" .*session\.id=(\S+) small=false .*error\.error="(?:\w+: )?(.*)"$` +
		`|\n(ERROR\s.*\bservice=(?:llm|session\.\w+)\b.*\berror=.*)$`) // older versions' log
	asks = regexp.MustCompile(`\ntimestamp=\S+ level=INFO .*message=stream .*session\.id=(\S+) small=false`)
)

// readTry parses opencode's log, which does not name the wait. A long wait in the text counts, but a longer header may
// override a short one. Other errors cause no wait.
func readTry(lines string) (agent.Try, bool) {
	if m := asks.FindStringSubmatch(lines); m != nil {
		return agent.Try{Session: m[1], Over: true}, true
	}
	m := refused.FindStringSubmatch(lines)
	if m == nil {
		return agent.Try{}, false
	}
	n := agent.Try{Session: m[1], Text: m[2] + m[3]}
	found := limit.Read(limit.Evidence{Message: n.Text})
	n.Unknown = found.Kind.IsLimit() && m[3] == ""
	if !n.Unknown {
		return n, true
	}
	if wait := waitIn(n.Text); wait > agent.LongestWait {
		n.Wait, n.Unknown = wait, false
	}
	return n, true
}

// waitIn returns a text's relative wait; 0 for none. It tests whether the reset moves with the time of reading.
func waitIn(text string) time.Duration {
	const later = 12 * time.Hour
	epoch := time.Unix(0, 0)
	first, ok := limit.ResetTime(text, epoch, nil)
	if !ok {
		return 0
	}
	second, ok := limit.ResetTime(text, epoch.Add(later), nil)
	if !ok || second.Sub(first) != later {
		return 0
	}
	return first.Sub(epoch)
}
