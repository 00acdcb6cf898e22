package agent

import (
	"fmt"
	"slices"
	"strings"
)

// The protocols of an endpoint.
const (
	ProtocolOpenAI    = "openai"
	ProtocolAnthropic = "anthropic"
	ProtocolGemini    = "gemini"
)

// Endpoint is a proxy on loopback through which a CLI reaches its model. The
// zero value stands for none.
type Endpoint struct {
	// Protocol is what the proxy speaks: openai (POST /v1/responses and
	// /v1/chat/completions), anthropic (POST /v1/messages) or gemini
	// (POST /v1beta/models/…).
	Protocol string
	// URL is http://127.0.0.1:PORT, without a slash at the end.
	URL string
	// Token lets an attempt use the proxy. It reaches the CLI as an environment
	// variable and in no other way.
	Token string
}

// tokenVariable carries the token for CLIs whose configuration can name a
// variable. It is none that a CLI or a script would use unasked.
const tokenVariable = "PAWL_ENDPOINT_TOKEN"

// credentials are the variables by which the CLIs sign in or are sent
// elsewhere. Where there is an endpoint none of them may get past it.
var credentials = []string{
	"ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_UNIX_SOCKET", "CLAUDE_CODE_OAUTH_TOKEN",
	"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_GATEWAY",
	"ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL", "ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_AWS_BASE_URL",
	"ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
	"CODEX_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_ORGANIZATION", "OPENAI_PROJECT",
	"GEMINI_API_KEY", "GOOGLE_API_KEY", "GOOGLE_GEMINI_BASE_URL", "GOOGLE_VERTEX_BASE_URL", "GOOGLE_GENERATIVE_AI_API_KEY", "GEMINI_CLI_CUSTOM_HEADERS", "CODE_ASSIST_ENDPOINT",
	"GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI", "GOOGLE_CLOUD_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
}

// check refuses an endpoint that a CLI cannot use.
func (e Endpoint) check(cli string, speaks ...string) error {
	switch {
	case e == Endpoint{}:
		return nil
	case !slices.Contains(speaks, e.Protocol):
		return fmt.Errorf("%s cannot use a provider of the protocol %q: give the backend a provider with the protocol %s", cli, e.Protocol, strings.Join(speaks, " or "))
	case e.URL == "" || e.Token == "":
		return fmt.Errorf("the endpoint of %s lacks its URL or its token", cli)
	}
	return nil
}

// allowed is the environment that the operator allows, without what would lead
// past the endpoint.
func (r Request) allowed() map[string]string {
	env := map[string]string{}
	for name, value := range r.Env {
		if r.Endpoint == (Endpoint{}) || !slices.Contains(credentials, name) {
			env[name] = value
		}
	}
	return env
}

// variables are those by which the client libraries of the three protocols find
// their server and key.
func (e Endpoint) variables() map[string]string {
	switch e.Protocol {
	case ProtocolOpenAI:
		return map[string]string{"OPENAI_BASE_URL": e.URL + "/v1", "OPENAI_API_KEY": e.Token}
	case ProtocolAnthropic:
		return map[string]string{"ANTHROPIC_BASE_URL": e.URL, "ANTHROPIC_API_KEY": e.Token}
	case ProtocolGemini:
		return map[string]string{"GOOGLE_GEMINI_BASE_URL": e.URL, "GEMINI_API_KEY": e.Token}
	}
	return nil
}
