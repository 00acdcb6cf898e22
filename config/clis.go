package config

import (
	"cmp"
	"slices"
)

// The kinds of backends.
const (
	Codex    = "codex"
	Claude   = "claude"
	Gemini   = "gemini"
	OpenCode = "opencode"
	Qwen     = "qwen"
	Command  = "command" // a program of the operator's own
)

// CLI is what all parts of Pawl know of an agent CLI. Its adapter, which starts it and reads its output, is joined by
// internal/agent/clis. The table stands here because config imports nothing of internal, and both read it.
type CLI struct {
	Kind    string // of its backends; also its program's name, and what inspect and replay call its stream
	Title   string // what people call it
	Package string // by which npm installs it
	Version string // that Pawl was checked with, exactly
	// Protocols are those in which it reaches a provider. Where there are several, the backend's provider chooses.
	Protocols []string
	// Efforts are its words for how much its model shall think, the least first. OwnEffort is what most models do
	// where none is named.
	Efforts   []string
	OwnEffort string
	// Models are the models of backends that name none, by protocol, "" for any; none where the CLI has a default of its
	// own. gemini asks a model which to take, for up to 75 s, and opencode and qwen refuse to start. The names are the
	// vendors' general ones for coding.
	Models map[string]string
	// Hosts are those that it reaches where it signs in by itself, as they stand in the CLI. ModelHosts are more of
	// them, by the part of the model's name before the slash.
	Hosts      []string
	ModelHosts map[string]string
	// Withheld are the environment variables, beside those of the Vendors, that hold a credential of the CLI or send it
	// to another endpoint. Empty, but not nil, where there are none.
	Withheld []string
	// Protected are patterns of files in a repository that configure it.
	Protected []string
}

var (
	openAIEfforts = []string{"none", "minimal", "low", "medium", "high", "xhigh", "max"}
	claudeEfforts = []string{"low", "medium", "high", "xhigh", "max"}
)

var table = []CLI{
	{
		Kind:      Codex,
		Title:     "Codex",
		Package:   "@openai/codex",
		Version:   "0.169.0",
		Protocols: []string{OpenAI},
		Efforts:   openAIEfforts,
		OwnEffort: "medium",
		Hosts:     []string{"chatgpt.com", "auth.openai.com", "api.openai.com"}, // auth for a new token
		Withheld:  []string{"CODEX_API_KEY", "CODEX_ACCESS_TOKEN", "OPENAI_ORGANIZATION", "OPENAI_PROJECT"},
		Protected: []string{"**/.codex"},
	},
	{
		Kind:      Claude,
		Title:     "Claude Code",
		Package:   "@anthropic-ai/claude-code",
		Version:   "2.1.197",
		Protocols: []string{Anthropic},
		Efforts:   claudeEfforts,
		OwnEffort: "high",
		Hosts:     []string{"api.anthropic.com", "platform.claude.com"}, // platform for a new token
		Withheld: []string{
			"ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS", "ANTHROPIC_UNIX_SOCKET", "CLAUDE_CODE_OAUTH_TOKEN",
			"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY",
			"CLAUDE_CODE_USE_MANTLE", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_GATEWAY",
			"ANTHROPIC_BEDROCK_BASE_URL", "ANTHROPIC_BEDROCK_MANTLE_BASE_URL", "ANTHROPIC_VERTEX_BASE_URL",
			"ANTHROPIC_FOUNDRY_BASE_URL", "ANTHROPIC_AWS_BASE_URL",
			"ANTHROPIC_FOUNDRY_API_KEY", "AWS_BEARER_TOKEN_BEDROCK",
		},
		Protected: []string{"**/.claude"},
	},
	{
		Kind:      Gemini,
		Title:     "Gemini CLI",
		Package:   "@google/gemini-cli",
		Version:   "0.61.0",
		Protocols: []string{Google},
		Efforts:   []string{"low", "medium", "high"},
		OwnEffort: "medium",
		Models:    map[string]string{"": "gemini-2.5-pro"},
		Hosts:     []string{"cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "generativelanguage.googleapis.com"}, // the first two for a login
		Withheld: []string{
			"GOOGLE_API_KEY", "GOOGLE_VERTEX_BASE_URL", "GEMINI_CLI_CUSTOM_HEADERS", "CODE_ASSIST_ENDPOINT",
			"GOOGLE_GENAI_USE_GCA", "GOOGLE_GENAI_USE_VERTEXAI",
			"GOOGLE_CLOUD_ACCESS_TOKEN", "GOOGLE_APPLICATION_CREDENTIALS",
		},
		Protected: []string{"**/.gemini"},
	},
	{
		Kind:      OpenCode,
		Title:     "OpenCode",
		Package:   "opencode-ai",
		Version:   "1.18.33",
		Protocols: []string{OpenAI, Anthropic, Google},
		Efforts:   openAIEfforts,
		OwnEffort: "medium",
		Models:    map[string]string{OpenAI: "gpt-5", Anthropic: "claude-sonnet-4-5", Google: "gemini-2.5-pro"},
		Hosts:     []string{"models.dev"},
		ModelHosts: map[string]string{
			"openai":    "api.openai.com",
			"anthropic": "api.anthropic.com",
			"google":    "generativelanguage.googleapis.com",
		},
		Withheld: []string{
			"OPENCODE_API_KEY", "OPENCODE_AUTH_CONTENT", "OPENCODE_CONSOLE_TOKEN",
			"GOOGLE_GENERATIVE_AI_API_KEY",
		},
		Protected: []string{"**/.opencode", "**/opencode.json", "**/opencode.jsonc"},
	},
	{
		Kind:      Qwen,
		Title:     "Qwen Code",
		Package:   "@qwen-code/qwen-code",
		Version:   "0.24.4",
		Protocols: []string{OpenAI},
		Efforts:   claudeEfforts,
		OwnEffort: "medium",
		Models:    map[string]string{"": "qwen3-coder-plus"},
		Hosts: []string{
			"dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com",
			"coding.dashscope.aliyuncs.com", "coding-intl.dashscope.aliyuncs.com", // its plans for coding
		},
		Withheld: []string{
			"QWEN_API_KEY", "QWEN_BASE_URL",
			"DASHSCOPE_API_KEY", "DASHSCOPE_PROXY_BASE_URL",
			"BAILIAN_CODING_PLAN_API_KEY", "BAILIAN_TOKEN_PLAN_API_KEY", "MODELSCOPE_API_KEY",
		},
		Protected: []string{"**/.qwen"},
	},
}

// CLIs are the kinds of the table, in its order.
func CLIs() (kinds []string) {
	for _, c := range table {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}

// CLIOf is the row of a kind; zero for kind command and for kinds that are not known.
func CLIOf(kind string) CLI {
	at := slices.IndexFunc(table, func(c CLI) bool { return c.Kind == kind })
	if at < 0 {
		return CLI{}
	}
	return table[at]
}

// Efforts are the words of a CLI for how much its model shall think, the least first;
// none for kind command.
func Efforts(kind string) []string { return CLIOf(kind).Efforts }

// ProtocolOf is the protocol that a kind needs; empty where any will do.
func ProtocolOf(kind string) string {
	if c := CLIOf(kind); len(c.Protocols) == 1 {
		return c.Protocols[0]
	}
	return ""
}

// DefaultModel is the model of a backend that names none. It is empty where the CLI has a default of its own or nobody
// can know.
func DefaultModel(kind, protocol string) string {
	models := CLIOf(kind).Models
	return cmp.Or(models[protocol], models[""])
}

// Withheld are the environment variables that no agent behind an endpoint gets: they hold a credential or lead past it.
func Withheld() (variables []string) {
	for _, v := range Vendors() {
		variables = append(variables, v.KeyVariable, v.URLVariable)
	}
	for _, c := range table {
		variables = append(variables, c.Withheld...)
	}
	return variables
}

// configuresCLIs are the files of a repository that configure one of the CLIs.
func configuresCLIs() (patterns []string) {
	for _, c := range table {
		patterns = append(patterns, c.Protected...)
	}
	return patterns
}
