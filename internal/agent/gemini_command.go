package agent

import (
	"encoding/json"
	"fmt"
	"strings"
)

// geminiAttempts is how often gemini may ask for one answer; its default of ten
// takes minutes.
const geminiAttempts = 3

func geminiAdapter() Adapter {
	return Adapter{
		Name: "gemini", Stream: StreamGemini, Command: geminiCommand, Parse: geminiLine, tries: geminiTries, exit: geminiExit, asleep: geminiAsleep,
		Version:    Version{Args: []string{"--version"}, Checked: "0.61.0", Package: "@google/gemini-cli"},
		Credential: ".gemini/oauth_creds.json",
		// It is read when gemini changes the model in the middle of a run.
		Unguarded: []string{".gemini/.env"},
	}
}

// geminiCommand is a headless `gemini` as the recorded runs of 0.61.0 want it:
// the prompt on standard input; every tool allowed, since Pawl's sandbox is
// around it; the model named, because else a request to a router comes first.
//
// The folder is untrusted when the settings are read, so those of the
// repository are left out, and trusted from --skip-trust on, without which
// gemini would neither start headless nor start Pawl's MCP server.
func geminiCommand(r Request) (Command, error) {
	if err := r.Endpoint.check("gemini", ProtocolGemini); err != nil {
		return Command{}, err
	}
	if err := checkEffort("gemini", r.Effort, "low", "medium", "high"); err != nil {
		return Command{}, err
	}
	if r.Model == "" {
		return Command{}, fmt.Errorf("gemini needs a model: set the backend's model, such as gemini-2.5-pro")
	}
	argv := append(program(r, "gemini"), "--output-format", "stream-json", "--approval-mode", "yolo", "--skip-trust",
		"--extensions=none", "--model="+r.Model)
	if len(r.TestTool) > 0 {
		argv = append(argv, "--allowed-mcp-server-names="+toolServer)
	} else {
		argv = append(argv, "--allowed-mcp-server-names=none")
	}
	if r.Session != "" {
		if !safeSession.MatchString(r.Session) {
			return Command{}, badSession("gemini", r.Session)
		}
		argv = append(argv, "--resume="+r.Session)
	}
	settings, err := geminiSettings(r)
	if err != nil {
		return Command{}, err
	}
	own := map[string]string{
		"HOME":                   r.Home,
		"GEMINI_CLI_NO_RELAUNCH": "true", // a second process would read the settings again, and by then trust the folder
		"GEMINI_SANDBOX":         "false",
		"NO_BROWSER":             "true",
	}
	return Command{
		Argv: argv, Env: environ(usual, r.allowed(), r.Endpoint.variables(), own), Stdin: r.Prompt,
		Files: map[string]string{".gemini/settings.json": settings},
	}, nil
}

// geminiSettings is the whole settings file.
func geminiSettings(r Request) (string, error) {
	settings := map[string]any{
		"security": map[string]any{
			// With useExternal gemini does not look for a key itself, and so does not
			// read .gemini/.env of a folder that it trusts by then.
			"auth":        map[string]any{"selectedType": geminiAuth(r), "useExternal": true},
			"folderTrust": map[string]any{"enabled": true},
		},
		"general": map[string]any{
			"maxAttempts": geminiAttempts, "enableAutoUpdate": false, "enableAutoUpdateNotification": false,
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
		settings["mcpServers"] = map[string]any{toolServer: map[string]any{
			"command": r.TestTool[0], "args": r.TestTool[1:], "trust": true, "timeout": toolTimeout.Milliseconds(),
		}}
	}
	if r.Effort != "" {
		settings["modelConfigs"] = map[string]any{"customOverrides": []any{map[string]any{
			"match":       map[string]any{"isChatModel": true},
			"modelConfig": map[string]any{"generateContentConfig": map[string]any{"thinkingConfig": geminiThinking(r.Model, r.Effort)}},
		}}}
	}
	text, err := json.MarshalIndent(settings, "", "  ")
	return string(text), err
}

// geminiAuth is how gemini signs in, which it must be told: by the key of the
// endpoint or of the environment, else by the account in HOME.
func geminiAuth(r Request) string {
	env := r.allowed()
	switch {
	case r.Endpoint != Endpoint{}, env["GEMINI_API_KEY"] != "":
		return "gemini-api-key"
	case env["GOOGLE_GENAI_USE_VERTEXAI"] != "", env["GOOGLE_API_KEY"] != "":
		return "vertex-ai"
	}
	return "oauth-personal"
}

// geminiThinking is the thinkingConfig of an effort. Models of the second
// generation take a budget of tokens, for which Google's page on OpenAI
// compatibility names these numbers; later ones take a level.
func geminiThinking(model, effort string) map[string]any {
	if strings.Contains(model, "gemini-2") {
		return map[string]any{"thinkingBudget": map[string]int{"low": 1024, "medium": 8192, "high": 24576}[effort]}
	}
	return map[string]any{"thinkingLevel": strings.ToUpper(effort)}
}
