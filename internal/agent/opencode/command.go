// Package opencode knows how opencode 1.18.33 is started (command.go), and what its output
// tells (stream.go).
package opencode

import (
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"strings"

	"github.com/pawlbot/pawl/internal/agent"
)

// Adapter is what Pawl knows of opencode.
func Adapter() agent.Adapter {
	return agent.Adapter{
		Name: "opencode", Stream: agent.StreamOpencode, Parse: parseLine, Tries: tries, ReadWait: readWait,
		Command: agent.Start{
			Program: "opencode", Protocols: []string{agent.ProtocolOpenAI, agent.ProtocolAnthropic, agent.ProtocolGemini},
			Efforts:  []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"},
			Sessions: sessions, Build: build,
		}.Command,
		Version:    agent.Version{Checked: "1.18.33", Package: "opencode-ai"},
		Credential: ".local/share/opencode/auth.json",
		// Its second configuration service imports the plugins that these name or
		// hold, whatever --pure and OPENCODE_DISABLE_PROJECT_CONFIG say.
		Unguarded: []string{".opencode", "opencode.json", "opencode.jsonc"},
	}
}

// build makes `opencode run` as the recorded runs of 1.18.33 want it: every
// permission given, since Pawl's sandbox is around it; no configuration, plugins
// or skills of the repository. Its log goes to standard error, which is where it
// tells that it waits for a provider.
func build(r agent.Request) (agent.Launch, error) {
	model, err := modelOf(r)
	if err != nil {
		return agent.Launch{}, err
	}
	args := []string{"run", "--format", "json", "--pure", "--print-logs", "--log-level", "INFO", "--title", "pawl", "--model=" + model}
	if r.Session != "" {
		args = append(args, "--session="+r.Session)
	}
	if r.Effort != "" {
		args = append(args, "--variant="+r.Effort)
	}
	env := r.Endpoint.OnlyToken()
	maps.Copy(env, map[string]string{
		"XDG_CONFIG_HOME": path.Join(r.Home, ".config"),
		"XDG_DATA_HOME":   path.Join(r.Home, ".local/share"),
		"XDG_STATE_HOME":  path.Join(r.Home, ".local/state"),
		"XDG_CACHE_HOME":  path.Join(r.Home, ".cache"),
	})
	for _, name := range []string{
		"PROJECT_CONFIG", "DEFAULT_PLUGINS", "EXTERNAL_SKILLS", "CLAUDE_CODE", "MODELS_FETCH", "AUTOUPDATE", "LSP_DOWNLOAD", "SHARE",
	} {
		env["OPENCODE_DISABLE_"+name] = "1"
	}
	return agent.Launch{Args: args, Env: env, Files: map[string]string{".config/opencode/opencode.json": configOf(r, model)}}, nil
}

// provider is the name of the endpoint's provider.
const provider = "pawl"

// modelOf names the model as opencode wants it, after its provider.
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

// Bounds that opencode is told of a model, in tokens, since it does not know
// those of the endpoint's: it compacts a session before the context is full, and
// without a limit of the output it asks for impossible budgets to think. Every
// model that agents are run with has as much room; 32,000 is opencode's own cap.
const (
	contextRoom = 200_000
	outputRoom  = 32_000
)

// modelConfig describes the endpoint's model. opencode ignores an effort
// that it knows no variant for, so those of the OpenAI protocol, where the word
// itself is sent, are spelled out; for the others it has its own by the model's
// name.
func modelConfig(r agent.Request) map[string]any {
	model := map[string]any{
		"tool_call": true, "reasoning": true,
		"limit": map[string]any{"context": contextRoom, "output": outputRoom},
	}
	if r.Effort != "" && r.Endpoint.Protocol == agent.ProtocolOpenAI {
		model["variants"] = map[string]any{r.Effort: map[string]any{"reasoningEffort": r.Effort}}
	}
	return model
}

// configOf is the whole configuration file. The token stands in it by the
// name of its variable only.
func configOf(r agent.Request, model string) string {
	config := map[string]any{
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
		case agent.ProtocolAnthropic:
			sdk = "@ai-sdk/anthropic"
		case agent.ProtocolGemini:
			sdk, base = "@ai-sdk/google", r.Endpoint.URL+"/v1beta"
		}
		config["enabled_providers"] = []string{provider}
		config["provider"] = map[string]any{provider: map[string]any{
			"npm": sdk, "name": provider,
			"options": map[string]any{"baseURL": base, "apiKey": "{env:" + agent.TokenVariable + "}"},
			"models":  map[string]any{r.Model: modelConfig(r)},
		}}
	}
	if len(r.TestTool) > 0 {
		config["mcp"] = map[string]any{agent.ToolServer: map[string]any{
			"type": "local", "command": r.TestTool, "enabled": true, "timeout": agent.ToolTimeout.Milliseconds(),
		}}
	}
	text, _ := json.MarshalIndent(config, "", "  ") // never fails for strings, numbers and switches
	return string(text)
}
