// Package codex knows how codex 0.169.0 is started (command.go), and what its output
// tells (stream.go) and its session file (session.go).
package codex

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
)

// Retries of codex before it reports a failure. Its defaults (4 and 5) keep a dead provider busy for 25 s and
// 30 requests; Pawl has its own breaker and backoff.
const (
	requestRetries = 2
	streamRetries  = 3
)

// openaiBaseURL is where an OPENAI_API_KEY is used unless OPENAI_BASE_URL says otherwise.
const openaiBaseURL = "https://api.openai.com/v1"

// Adapter is what Pawl knows of Codex.
func Adapter() agent.Adapter {
	return agent.Adapter{
		Name: "codex", Stream: config.Codex, Parse: parseLine,
		Command: agent.Start{
			Program: "codex", Protocols: []string{config.OpenAI},
			Efforts:  []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"},
			Sessions: agent.SafeSession, Build: build,
		}.Command,
		FoldSession: FoldSession, OpenSession: openSession, ParseSession: parseSessionLine,
		Version:    agent.Version{Checked: "0.169.0", Package: "@openai/codex"},
		Credential: ".codex/auth.json",
	}
}

// build makes `codex exec` as the recorded runs of 0.169.0 want it: no sandbox and questions of its own, since
// Pawl's is around it; no rules or trust from the repository. The dash has it read standard input.
func build(r agent.Request) (agent.Launch, error) {
	args := []string{"exec"}
	if r.Session != "" {
		args = append(args, "resume", r.Session)
	}
	args = append(args, "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules")
	if r.Model != "" {
		args = append(args, "--model="+r.Model)
	}
	if r.Effort != "" {
		args = append(args, "-c", "model_reasoning_effort="+tomlString(r.Effort))
	}
	env := r.Endpoint.OnlyToken()
	env["CODEX_HOME"] = path.Join(r.Home, ".codex")
	return agent.Launch{Args: append(args, "-"), Env: env, Files: map[string]string{".codex/config.toml": configOf(r)}}, nil
}

// configOf is the whole configuration file. The built-in provider has no bound of its retries and ignores
// OPENAI_API_KEY and OPENAI_BASE_URL, so either, or an endpoint, gets a provider of its own. Else codex signs
// in as HOME says (auth.json, CODEX_API_KEY).
func configOf(r agent.Request) string {
	var b strings.Builder
	b.WriteString("check_for_update_on_startup = false\napproval_policy = \"never\"\ncli_auth_credentials_store = \"file\"\n")
	provider := providerOf(r)
	if provider != "" {
		b.WriteString("model_provider = \"pawl\"\n")
	}
	b.WriteString("\n[analytics]\nenabled = false\n\n[feedback]\nenabled = false\n\n[history]\npersistence = \"none\"\n")
	fmt.Fprintf(&b, "\n[shell_environment_policy]\nexclude = [\"OPENAI_API_KEY\", \"CODEX_API_KEY\", %s]\n", tomlString(agent.TokenVariable))
	fmt.Fprintf(&b, "\n[projects.%s]\ntrust_level = \"untrusted\"\n", tomlString(r.Dir))
	b.WriteString(provider)
	if len(r.TestTool) > 0 {
		args := make([]string, 0, len(r.TestTool))
		for _, arg := range r.TestTool[1:] {
			args = append(args, tomlString(arg))
		}
		fmt.Fprintf(&b, "\n[mcp_servers.%s]\ncommand = %s\nargs = [%s]\nstartup_timeout_sec = %d\ntool_timeout_sec = %d\n", agent.ToolServer,
			tomlString(r.TestTool[0]), strings.Join(args, ", "), int(agent.ToolStartup.Seconds()), int(agent.ToolTimeout.Seconds()))
	}
	return b.String()
}

// providerOf is the configuration of the provider, empty for the built-in one.
func providerOf(r agent.Request) string {
	env := r.Allowed()
	base, variable := env["OPENAI_BASE_URL"], ""
	if env["OPENAI_API_KEY"] != "" {
		variable = "OPENAI_API_KEY"
	}
	switch {
	case r.Endpoint != agent.Endpoint{}:
		base, variable = r.Endpoint.URL+"/v1", agent.TokenVariable
	case base == "" && variable == "":
		return ""
	case base == "":
		base = openaiBaseURL
	}
	var b strings.Builder
	fmt.Fprintf(&b, "\n[model_providers.pawl]\nname = \"pawl\"\nbase_url = %s\nwire_api = \"responses\"\n", tomlString(base))
	if variable != "" {
		fmt.Fprintf(&b, "env_key = %s\n", tomlString(variable))
	}
	fmt.Fprintf(&b, "request_max_retries = %d\nstream_max_retries = %d\n", requestRetries, streamRetries)
	return b.String()
}

// tomlString quotes s as a TOML basic string: JSON's, save one control character.
func tomlString(s string) string {
	quoted, _ := json.Marshal(s) // never fails for a string
	return strings.ReplaceAll(string(quoted), "\x7f", `\u007f`)
}
