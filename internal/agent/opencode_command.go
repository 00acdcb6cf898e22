package agent

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
)

func opencodeAdapter() Adapter {
	return Adapter{
		Name: "opencode", Stream: StreamOpencode, Command: opencodeCommand, Parse: opencodeLine, tries: opencodeTries, asleep: opencodeAsleep,
		Version:    Version{Args: []string{"--version"}, Checked: "1.18.33", Package: "opencode-ai"},
		Credential: ".local/share/opencode/auth.json",
		// Its second configuration service imports the plugins that these name or
		// hold, whatever --pure and OPENCODE_DISABLE_PROJECT_CONFIG say.
		Unguarded: []string{".opencode", "opencode.json", "opencode.jsonc"},
	}
}

// opencodeCommand is `opencode run` as the recorded runs of 1.18.33 want it: the
// prompt on standard input; every permission given, since Pawl's sandbox is
// around it; no configuration, plugins or skills of the repository. Its log goes
// to standard error, which is where it tells that it waits for a provider.
func opencodeCommand(r Request) (Command, error) {
	if err := r.Endpoint.check("opencode", ProtocolOpenAI, ProtocolAnthropic, ProtocolGemini); err != nil {
		return Command{}, err
	}
	if err := checkEffort("opencode", r.Effort, "none", "minimal", "low", "medium", "high", "xhigh", "max"); err != nil {
		return Command{}, err
	}
	model, err := opencodeModel(r)
	if err != nil {
		return Command{}, err
	}
	argv := append(program(r, "opencode"), "run", "--format", "json", "--pure", "--print-logs", "--log-level", "INFO",
		"--title", "pawl", "--model="+model)
	if r.Session != "" {
		if !opencodeSession.MatchString(r.Session) {
			return Command{}, badSession("opencode", r.Session)
		}
		argv = append(argv, "--session="+r.Session)
	}
	if r.Effort != "" {
		argv = append(argv, "--variant="+r.Effort)
	}
	config, err := opencodeConfig(r, model)
	if err != nil {
		return Command{}, err
	}
	own := map[string]string{
		"HOME":                             r.Home,
		"XDG_CONFIG_HOME":                  path.Join(r.Home, ".config"),
		"XDG_DATA_HOME":                    path.Join(r.Home, ".local/share"),
		"XDG_STATE_HOME":                   path.Join(r.Home, ".local/state"),
		"XDG_CACHE_HOME":                   path.Join(r.Home, ".cache"),
		"OPENCODE_DISABLE_PROJECT_CONFIG":  "1",
		"OPENCODE_DISABLE_DEFAULT_PLUGINS": "1",
		"OPENCODE_DISABLE_EXTERNAL_SKILLS": "1",
		"OPENCODE_DISABLE_CLAUDE_CODE":     "1",
		"OPENCODE_DISABLE_MODELS_FETCH":    "1",
		"OPENCODE_DISABLE_AUTOUPDATE":      "1",
		"OPENCODE_DISABLE_LSP_DOWNLOAD":    "1",
		"OPENCODE_DISABLE_SHARE":           "1",
	}
	if r.Endpoint != (Endpoint{}) {
		own[tokenVariable] = r.Endpoint.Token
	}
	return Command{
		Argv: argv, Env: environ(usual, r.allowed(), own), Stdin: r.Prompt,
		Files: map[string]string{".config/opencode/opencode.json": config},
	}, nil
}

// opencodeProvider is the name of the endpoint's provider.
const opencodeProvider = "pawl"

// opencodeModel names the model as opencode wants it, after its provider.
func opencodeModel(r Request) (string, error) {
	switch {
	case r.Model == "":
		return "", fmt.Errorf("opencode needs a model: set the backend's model")
	case r.Endpoint != Endpoint{}:
		return opencodeProvider + "/" + r.Model, nil
	case !strings.Contains(r.Model, "/"):
		return "", fmt.Errorf("opencode needs its provider before the model %q: set the backend's model to PROVIDER/%[1]s, or give the backend a provider", r.Model)
	}
	return r.Model, nil
}

// Bounds that opencode is told of a model, in tokens, since it does not know
// those of the endpoint's: it compacts a session before the context is full, and
// without a limit of the output it asks for impossible budgets to think. Every
// model that agents are run with has as much room; 32,000 is opencode's own cap.
const (
	opencodeContext = 200_000
	opencodeOutput  = 32_000
)

// opencodeModelConfig describes the endpoint's model. opencode ignores an effort
// that it knows no variant for, so those of the OpenAI protocol, where the word
// itself is sent, are spelled out; for the others it has its own by the model's
// name.
func opencodeModelConfig(r Request) map[string]any {
	model := map[string]any{
		"tool_call": true, "reasoning": true,
		"limit": map[string]any{"context": opencodeContext, "output": opencodeOutput},
	}
	if r.Effort != "" && r.Endpoint.Protocol == ProtocolOpenAI {
		model["variants"] = map[string]any{r.Effort: map[string]any{"reasoningEffort": r.Effort}}
	}
	return model
}

// opencodeConfig is the whole configuration file. The token stands in it by the
// name of its variable only.
func opencodeConfig(r Request, model string) (string, error) {
	config := map[string]any{
		"$schema":     "https://opencode.ai/config.json",
		"share":       "disabled",
		"autoupdate":  false,
		"snapshot":    false,
		"model":       model,
		"small_model": model,
		"permission":  "allow",
	}
	if r.Endpoint != (Endpoint{}) {
		sdk, base := "@ai-sdk/openai-compatible", r.Endpoint.URL+"/v1"
		switch r.Endpoint.Protocol {
		case ProtocolAnthropic:
			sdk = "@ai-sdk/anthropic"
		case ProtocolGemini:
			sdk, base = "@ai-sdk/google", r.Endpoint.URL+"/v1beta"
		}
		config["enabled_providers"] = []string{opencodeProvider}
		config["provider"] = map[string]any{opencodeProvider: map[string]any{
			"npm": sdk, "name": opencodeProvider,
			"options": map[string]any{"baseURL": base, "apiKey": "{env:" + tokenVariable + "}"},
			"models":  map[string]any{r.Model: opencodeModelConfig(r)},
		}}
	}
	if len(r.TestTool) > 0 {
		config["mcp"] = map[string]any{toolServer: map[string]any{
			"type": "local", "command": r.TestTool, "enabled": true, "timeout": toolTimeout.Milliseconds(),
		}}
	}
	text, err := json.MarshalIndent(config, "", "  ")
	return string(text), err
}
