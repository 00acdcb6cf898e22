package agent

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// Retries that codex may make on its own before it reports a failure. Its
// defaults (4 and 5) keep a dead provider busy for 25 s and send 30 requests;
// Pawl has its own breaker and backoff.
const (
	codexRequestRetries = 2
	codexStreamRetries  = 3
)

// openaiBaseURL is where an OPENAI_API_KEY is used unless OPENAI_BASE_URL says otherwise.
const openaiBaseURL = "https://api.openai.com/v1"

// safeSession matches the sessions of codex, claude and gemini, which are UUIDs.
var safeSession = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

func codexAdapter() Adapter {
	return Adapter{
		Name: "codex", Stream: StreamCodex,
		Command: codexCommand, Parse: codexLine,
		ReadSession: readCodexSession, openSession: openCodexSession, parseSession: codexSessionLine,
		Version:    Version{Args: []string{"--version"}, Checked: "0.169.0", Package: "@openai/codex"},
		Credential: ".codex/auth.json",
	}
}

// codexCommand is `codex exec` as the recorded runs of 0.169.0 want it: the
// prompt on standard input, which is then closed; no sandbox and no questions
// of its own, since Pawl's sandbox is around it; no rules or trust from the
// repository. TZ is UTC because codex prints reset times in the local zone
// without naming it.
func codexCommand(r Request) (Command, error) {
	if err := r.Endpoint.check("codex", ProtocolOpenAI); err != nil {
		return Command{}, err
	}
	if err := checkEffort("codex", r.Effort, "none", "minimal", "low", "medium", "high", "xhigh", "max"); err != nil {
		return Command{}, err
	}
	argv := append(program(r, "codex"), "exec")
	if r.Session != "" {
		if !safeSession.MatchString(r.Session) {
			return Command{}, badSession("codex", r.Session)
		}
		argv = append(argv, "resume", r.Session)
	}
	argv = append(argv, "--json", "--dangerously-bypass-approvals-and-sandbox", "--skip-git-repo-check", "--ignore-rules")
	if r.Model != "" {
		argv = append(argv, "--model="+r.Model)
	}
	if r.Effort != "" {
		argv = append(argv, "-c", "model_reasoning_effort="+tomlString(r.Effort))
	}
	own := map[string]string{
		"HOME":       r.Home,
		"CODEX_HOME": path.Join(r.Home, ".codex"),
	}
	if r.Endpoint != (Endpoint{}) {
		own[tokenVariable] = r.Endpoint.Token
	}
	return Command{
		Argv:  append(argv, "-"),
		Env:   environ(usual, r.allowed(), own),
		Stdin: r.Prompt,
		Files: map[string]string{".codex/config.toml": codexConfig(r)},
	}, nil
}

// codexConfig is the whole configuration file. The built-in provider can
// neither be limited in its retries nor does it look at OPENAI_API_KEY or
// OPENAI_BASE_URL, so either of them, or an endpoint, gets a provider of its
// own. Without them codex signs in as HOME says (auth.json, CODEX_API_KEY).
func codexConfig(r Request) string {
	var b strings.Builder
	b.WriteString("check_for_update_on_startup = false\napproval_policy = \"never\"\ncli_auth_credentials_store = \"file\"\n")
	provider := codexProvider(r)
	if provider != "" {
		b.WriteString("model_provider = \"pawl\"\n")
	}
	b.WriteString("\n[analytics]\nenabled = false\n\n[feedback]\nenabled = false\n\n[history]\npersistence = \"none\"\n")
	fmt.Fprintf(&b, "\n[shell_environment_policy]\nexclude = [\"OPENAI_API_KEY\", \"CODEX_API_KEY\", %s]\n", tomlString(tokenVariable))
	fmt.Fprintf(&b, "\n[projects.%s]\ntrust_level = \"untrusted\"\n", tomlString(r.Dir))
	b.WriteString(provider)
	if len(r.TestTool) > 0 {
		args := make([]string, 0, len(r.TestTool))
		for _, arg := range r.TestTool[1:] {
			args = append(args, tomlString(arg))
		}
		fmt.Fprintf(&b, "\n[mcp_servers.%s]\ncommand = %s\nargs = [%s]\nstartup_timeout_sec = %d\ntool_timeout_sec = %d\n", toolServer,
			tomlString(r.TestTool[0]), strings.Join(args, ", "), int(toolStartup.Seconds()), int(toolTimeout.Seconds()))
	}
	return b.String()
}

// codexProvider is the part of the configuration about the provider, empty for
// the built-in one.
func codexProvider(r Request) string {
	env := r.allowed()
	base, variable := env["OPENAI_BASE_URL"], ""
	if env["OPENAI_API_KEY"] != "" {
		variable = "OPENAI_API_KEY"
	}
	switch {
	case r.Endpoint != Endpoint{}:
		base, variable = r.Endpoint.URL+"/v1", tokenVariable
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
	fmt.Fprintf(&b, "request_max_retries = %d\nstream_max_retries = %d\n", codexRequestRetries, codexStreamRetries)
	return b.String()
}

// tomlString quotes s as a TOML basic string.
func tomlString(s string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, r := range strings.ToValidUTF8(s, "\uFFFD") {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r < 0x20 || r == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
	return b.String()
}
