// Package gemini knows how Gemini CLI 0.61.0 is started (command.go), and what its output
// tells (stream.go).
package gemini

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/pawlbot/pawl/internal/agent"
)

// attempts is how often gemini may ask for one answer; its default of ten
// takes minutes.
const attempts = 3

// Adapter is what Pawl knows of Gemini CLI.
func Adapter() agent.Adapter {
	return agent.Adapter{
		Name: "gemini", Stream: agent.StreamGemini, Parse: parseLine, Tries: tries, Exit: exitEnding, ReadWait: readWait,
		Command: agent.Start{
			Program: "gemini", Protocols: []string{agent.ProtocolGemini}, Efforts: []string{"low", "medium", "high"},
			Sessions: agent.SafeSession, Build: build,
		}.Command,
		Version:    agent.Version{Checked: "0.61.0", Package: "@google/gemini-cli"},
		Credential: ".gemini/oauth_creds.json",
		// It is read when gemini changes the model in the middle of a run.
		Unguarded: []string{".gemini/.env"},
	}
}

// build makes a headless `gemini` as the recorded runs of 0.61.0 want it: every
// tool allowed, since Pawl's sandbox is around it; the model named, because else
// a request to a router comes first.
//
// The folder is untrusted when the settings are read, so those of the
// repository are left out, and trusted from --skip-trust on, without which
// gemini would neither start headless nor start Pawl's MCP server.
func build(r agent.Request) (agent.Launch, error) {
	if r.Model == "" {
		return agent.Launch{}, fmt.Errorf("gemini needs a model: set the backend's model, such as gemini-2.5-pro")
	}
	server := "none"
	if len(r.TestTool) > 0 {
		server = agent.ToolServer
	}
	args := []string{"--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust",
		"--extensions=none", "--model=" + r.Model, "--allowed-mcp-server-names=" + server}
	if r.Session != "" {
		args = append(args, "--resume="+r.Session)
	}
	env := r.Endpoint.Variables()
	env["GEMINI_CLI_NO_RELAUNCH"] = "true" // a second process would read the settings again, and by then trust the folder
	env["GEMINI_SANDBOX"] = "false"
	env["NO_BROWSER"] = "true"
	return agent.Launch{Args: args, Env: env, Files: map[string]string{".gemini/settings.json": settingsOf(r)}}, nil
}

// settingsOf is the whole settings file.
func settingsOf(r agent.Request) string {
	settings := map[string]any{
		"security": map[string]any{
			// With useExternal gemini does not look for a key itself, and so does not
			// read .gemini/.env of a folder that it trusts by then.
			"auth":        map[string]any{"selectedType": authOf(r), "useExternal": true},
			"folderTrust": map[string]any{"enabled": true},
		},
		"general": map[string]any{
			"maxAttempts": attempts, "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
			"sessionRetention": map[string]any{"enabled": false},
		},
		"privacy":      map[string]any{"usageStatisticsEnabled": false},
		"telemetry":    map[string]any{"enabled": false},
		"hooksConfig":  map[string]any{"enabled": false},
		"experimental": map[string]any{"enableAgents": false},
		"skills":       map[string]any{"enabled": false},
		"advanced":     map[string]any{"ignoreLocalEnv": true},
	}
	if len(r.TestTool) > 0 {
		settings["mcpServers"] = map[string]any{agent.ToolServer: map[string]any{
			"command": r.TestTool[0], "args": r.TestTool[1:], "trust": true, "timeout": agent.ToolTimeout.Milliseconds(),
		}}
	}
	if r.Effort != "" {
		settings["modelConfigs"] = map[string]any{"customOverrides": []any{map[string]any{
			"match":       map[string]any{"isChatModel": true},
			"modelConfig": map[string]any{"generateContentConfig": map[string]any{"thinkingConfig": thinkingOf(r.Model, r.Effort)}},
		}}}
	}
	text, _ := json.MarshalIndent(settings, "", "  ") // never fails for strings, numbers and switches
	return string(text)
}

// authOf is how gemini signs in, which it must be told: by the key of the
// endpoint or of the environment, else by the account in HOME.
func authOf(r agent.Request) string {
	env := r.Allowed()
	switch {
	case r.Endpoint != agent.Endpoint{}, env["GEMINI_API_KEY"] != "":
		return "gemini-api-key"
	case env["GOOGLE_GENAI_USE_VERTEXAI"] != "", env["GOOGLE_API_KEY"] != "":
		return "vertex-ai"
	}
	return "oauth-personal"
}

// thinkingOf is the thinkingConfig of an effort. Models of the second
// generation take a budget of tokens, for which Google's page on OpenAI
// compatibility names these numbers; later ones take a level.
func thinkingOf(model, effort string) map[string]any {
	if strings.Contains(model, "gemini-2") {
		return map[string]any{"thinkingBudget": map[string]int{"low": 1024, "medium": 8192, "high": 24576}[effort]}
	}
	return map[string]any{"thinkingLevel": strings.ToUpper(effort)}
}
