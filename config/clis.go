package config

import (
	"cmp"
	"slices"
)

// Kinds of backends.
const (
	Codex    = "codex"
	Claude   = "claude"
	Gemini   = "gemini"
	OpenCode = "opencode"
	Qwen     = "qwen"
	Command  = "command" // the operator's own program
)

// CLI holds facts about an agent CLI. internal/agent/clis adds the adapter that runs it.
type CLI struct {
	Kind    string // also the program's and the stream's name
	Title   string
	Package string // npm package
	Version string // tested version
	// Protocols are the provider protocols that the CLI supports. If it supports several, the backend's provider decides.
	Protocols []string
	// Efforts are sorted, lowest first. OwnEffort is the default of most models.
	Efforts   []string
	OwnEffort string
	// Models holds default models by protocol ("" for any) for CLIs without a usable default: gemini needs up
	// to 75 s to choose a model, opencode and qwen refuse to start.
	Models map[string]string
	// Hosts are the hosts that the CLI's own login needs, from its source code. ModelHosts adds hosts by model prefix.
	Hosts      []string
	ModelHosts map[string]string
	// Withheld lists credential and endpoint variables in addition to the Vendors'. It is never nil.
	Withheld []string
	// Protected lists patterns of files that configure the CLI.
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
		Hosts:     []string{"chatgpt.com", "auth.openai.com", "api.openai.com"}, // auth.openai.com renews tokens
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
		Hosts:     []string{"api.anthropic.com", "platform.claude.com"}, // platform.claude.com renews tokens
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
		Hosts:     []string{"cloudcode-pa.googleapis.com", "oauth2.googleapis.com", "generativelanguage.googleapis.com"}, // the first two serve logins
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
			"coding.dashscope.aliyuncs.com", "coding-intl.dashscope.aliyuncs.com", // coding plans
		},
		Withheld: []string{
			"QWEN_API_KEY", "QWEN_BASE_URL",
			"DASHSCOPE_API_KEY", "DASHSCOPE_PROXY_BASE_URL",
			"BAILIAN_CODING_PLAN_API_KEY", "BAILIAN_TOKEN_PLAN_API_KEY", "MODELSCOPE_API_KEY",
		},
		Protected: []string{"**/.qwen"},
	},
}

// CLIs lists the kinds in the table's order.
func CLIs() (kinds []string) {
	for _, c := range table {
		kinds = append(kinds, c.Kind)
	}
	return kinds
}

// CLIOf returns a kind's facts, or the zero CLI for command and unknown kinds.
func CLIOf(kind string) CLI {
	at := slices.IndexFunc(table, func(c CLI) bool { return c.Kind == kind })
	if at < 0 {
		return CLI{}
	}
	return table[at]
}

// Efforts lists a kind's efforts, lowest first.
func Efforts(kind string) []string { return CLIOf(kind).Efforts }

// ProtocolOf returns the protocol that a kind requires, or empty if several work.
func ProtocolOf(kind string) string {
	if c := CLIOf(kind); len(c.Protocols) == 1 {
		return c.Protocols[0]
	}
	return ""
}

// DefaultModel returns the model of a backend that names none; empty if the CLI chooses.
func DefaultModel(kind, protocol string) string {
	models := CLIOf(kind).Models
	return cmp.Or(models[protocol], models[""])
}

// Withheld lists variables that agents with a provider never get: credentials and other endpoints.
func Withheld() (variables []string) {
	for _, v := range Vendors() {
		variables = append(variables, v.KeyVariable, v.URLVariable)
	}
	for _, c := range table {
		variables = append(variables, c.Withheld...)
	}
	return variables
}

func configuresCLIs() (patterns []string) {
	for _, c := range table {
		patterns = append(patterns, c.Protected...)
	}
	return patterns
}
