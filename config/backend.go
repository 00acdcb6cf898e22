package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Backend describes an agent CLI, its account, model and effort.
type Backend struct {
	Name            string        `yaml:"name"`
	Kind            string        `yaml:"kind"` // one of CLIs, or Command
	Argv            []string      `yaml:"argv"`
	Stream          string        `yaml:"stream"`           // Plain or one of CLIs
	Model           string        `yaml:"model"`            // empty for the CLI's default
	SideModels      []string      `yaml:"side_models"`      // besides Model and the CLI's small models
	Effort          string        `yaml:"effort"`           // empty for the CLI's default
	EscalatedEffort string        `yaml:"escalated_effort"` // empty for no escalation
	Account         string        `yaml:"account"`          // backends with the same account share a usage limit
	Accounts        []string      `yaml:"accounts"`         // instead of Account, Provider and CredentialFile
	Provider        string        `yaml:"provider"`         // empty if the agent uses its own login
	CredentialFile  string        `yaml:"credential_file"`
	Env             []string      `yaml:"env"` // variable names
	Timeout         time.Duration `yaml:"timeout"`
	IdleTimeout     time.Duration `yaml:"idle_timeout"`    // time without output
	StartupTimeout  time.Duration `yaml:"startup_timeout"` // time to the first byte
}

// raised returns the next higher effort, or empty if there is none. An empty effort means OwnEffort.
func raised(kind, effort string) string {
	known := Efforts(kind)
	at := slices.Index(known, cmp.Or(effort, CLIOf(kind).OwnEffort)) + 1
	if at == 0 || at == len(known) {
		return ""
	}
	return known[at]
}

// Plain is the stream of an agent that prints plain text.
const Plain = "plain"

// Recorded agents print within seconds of their start and at every tool call. defaultTimeout is our choice.
const (
	defaultTimeout        = 90 * time.Minute
	defaultIdleTimeout    = 15 * time.Minute
	defaultStartupTimeout = 2 * time.Minute
	// maxTimeout is a day because the limits of attempts are daily.
	maxTimeout = 24 * time.Hour
)

// NewBackend returns a backend with its defaults.
func NewBackend(name, kind string) Backend {
	b := Backend{Name: name, Kind: kind}
	b.setDefaults()
	b.complete(func(string) bool { return false })
	return b
}

// Program returns the CLI's name or path.
func (b Backend) Program() string {
	if len(b.Argv) > 0 {
		return b.Argv[0]
	}
	return b.Kind
}

func (b *Backend) setDefaults() {
	b.Timeout, b.IdleTimeout, b.StartupTimeout = defaultTimeout, defaultIdleTimeout, defaultStartupTimeout
}

// complete sets defaults that depend on decoded fields.
func (b *Backend) complete(set func(key string) bool) {
	own := b.Kind
	if b.Kind == Command {
		own = Plain
	}
	b.Account, b.Stream = cmp.Or(b.Account, b.Name), cmp.Or(b.Stream, own)
	if len(b.Accounts) > 0 {
		b.Account = b.Accounts[0]
	}
	if !set("escalated_effort") {
		b.EscalatedEffort = raised(b.Kind, b.Effort)
	}
	if !set("idle_timeout") {
		b.IdleTimeout = min(b.IdleTimeout, b.Timeout)
	}
	if !set("startup_timeout") {
		b.StartupTimeout = min(b.StartupTimeout, b.Timeout)
	}
}

// backendName matches names that /pawl use accepts.
var backendName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// githubVariables usually hold GitHub credentials. An agent with one could bypass Pawl's limits.
var githubVariables = []string{"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"}

func (s *source) validateBackends(c Server) {
	s.addIf(len(c.Backends) == 0, "backends", "is missing; name at least one agent, such as {name: codex, kind: codex}")
	first := map[string]int{}
	for i, b := range c.Backends {
		key := fmt.Sprintf("backends[%d]", i)
		s.validateBackend(key, b)
		if len(b.Accounts) > 0 {
			s.validateBackendAccounts(key, b, c)
		} else {
			s.validateAccess(key, b, c.Providers)
		}
		name := strings.ToLower(b.Name)
		if j, again := first[name]; again && name != "" {
			s.add(key+".name", "%q is also the name of backends[%d]; names must differ in more than case", b.Name, j)
			continue
		}
		first[name] = i
	}
}

func (s *source) validateBackend(key string, b Backend) {
	s.validateName(key+".name", b.Name, "backend")
	s.required(key+".kind", b.Kind, append(CLIs(), Command)...)
	s.addIf(
		b.Kind == Command && len(b.Argv) == 0,
		key+".argv",
		`is missing; kind command needs the program and its arguments, such as ["/usr/local/bin/my-agent"]`,
	)
	s.validateCommand(key+".argv", b.Argv)
	if b.Stream != b.Kind || b.Kind == Command {
		s.oneOf(key+".stream", b.Stream, append([]string{Plain}, CLIs()...)...)
		s.addIf(
			b.Kind != Command && s.set(key+".stream"),
			key+".stream",
			"is for kind command only; remove it, as %s has its own stream",
			quote(b.Kind),
		)
	}
	for _, word := range []struct{ name, value string }{
		{"model", b.Model}, {"effort", b.Effort}, {"escalated_effort", b.EscalatedEffort}, {"account", b.Account},
	} {
		if strings.HasPrefix(word.value, "-") || strings.ContainsFunc(word.value, isControl) {
			s.add(
				key+"."+word.name,
				"%s starts with a dash or holds a control character, which the agent would misread",
				s.found(key+"."+word.name),
			)
		}
	}
	s.validateEnv(key, "env", b.Env)
	s.validateTimeouts(key, b)
}

func (s *source) validateName(key, name, of string) {
	s.addIf(name == "", key, "is missing; give each %s a unique name", of)
	s.addIf(
		!backendName.MatchString(name),
		key,
		"%s is not a name; use up to 64 letters, digits, dots, dashes and underscores",
		s.found(key),
	)
}

func (s *source) validateCommand(key string, argv []string) {
	for i, arg := range argv {
		s.addIf(
			strings.ContainsRune(arg, 0) || i == 0 && arg == "",
			fmt.Sprintf("%s[%d]", key, i),
			"is empty or holds a NUL byte; the first item is the program, the others its arguments",
		)
	}
}

func (s *source) validateEnv(key, list string, names []string) {
	for i, name := range names {
		at := fmt.Sprintf("%s.%s[%d]", key, list, i)
		user, own := s.variables[name]
		s.addIf(
			!variableName.MatchString(name),
			at,
			"%s is not the name of an environment variable; list names, without values",
			quote(name),
		)
		s.addIf(
			own && holdsSecret(user),
			at,
			"%s is used for %s, so an agent must not get it; remove it",
			name,
			user,
		)
		s.addIf(
			slices.Contains(githubVariables, name),
			at,
			"%s holds a GitHub credential, which an agent must not get; remove it",
			name,
		)
		s.addIf(isOwnVariable(name, "HOME"), at, "%s is set by Pawl for each attempt; remove it", name)
	}
}

// holdsSecret reports whether a configuration key holds one of Pawl's secrets.
func holdsSecret(key string) bool {
	switch key {
	case "database", "server.metrics_token", "notify.url":
		return true
	}
	of := func(group string) bool { return strings.HasPrefix(key, group) }
	return slices.ContainsFunc([]string{"github.", "providers[", "gateway."}, of)
}

func (s *source) validateTimeouts(key string, b Backend) {
	if outside(b.Timeout, 1, maxTimeout) {
		s.add(key+".timeout", "%s is out of range; use a duration up to %s", b.Timeout, maxTimeout)
		return
	}
	const wrong = "%s is out of range; use a duration up to the timeout of %s"
	s.addIf(outside(b.IdleTimeout, 1, b.Timeout), key+".idle_timeout", wrong, b.IdleTimeout, b.Timeout)
	s.addIf(outside(b.StartupTimeout, 1, b.Timeout), key+".startup_timeout", wrong, b.StartupTimeout, b.Timeout)
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

// Provider describes a model provider behind the gateway. Agents never receive the key.
type Provider struct {
	Name     string  `yaml:"name"`
	Protocol string  `yaml:"protocol"` // OpenAI, Anthropic or Google
	BaseURL  string  `yaml:"base_url"`
	Key      Secret  `yaml:"key"`
	Prices   []Price `yaml:"prices"` // in addition to the vendor's prices; see PriceList
	// Efforts overrides the efforts of models.json, lowest first.
	Efforts       map[string][]string `yaml:"efforts"`
	NoAnswerBytes int                 `yaml:"no_answer_bytes"` // see policy.Ladder.NoAnswerRetry
	MinConfidence float64             `yaml:"min_confidence"`  // 0 disables the check
	AllowRemote   bool                `yaml:"allow_remote"`
	Relay         Relay               // not in the file: set from Server.Gateway
}

// KeySource names the variable or configuration key of the provider's credential, for messages.
func (p Provider) KeySource() string {
	what := "the key of provider " + p.Name
	if p.Relay.URL != "" {
		what = "gateway.token, or the key of provider " + p.Name + " on that server"
	}
	if name := p.Credential().Variable(); name != "" {
		return name + " (" + what + ")"
	}
	return what + " in the configuration"
}

// Price applies to a model and its dated versions, in US dollars per million tokens.
type Price struct {
	Model       string  `json:"model"        yaml:"model"`
	Input       float64 `json:"input"        yaml:"input"`
	CachedInput float64 `json:"cached_input" yaml:"cached_input"`
	CacheWrite  float64 `json:"cache_write"  yaml:"cache_write"` // input that the provider caches; 0 means 1.25 times Input
	Output      float64 `json:"output"       yaml:"output"`
	// Long prices apply to calls with more than LongOver input tokens; 0 disables them.
	LongOver        int64   `json:"long_over"         yaml:"long_over"`
	LongInput       float64 `json:"long_input"        yaml:"long_input"`
	LongCachedInput float64 `json:"long_cached_input" yaml:"long_cached_input"`
	LongOutput      float64 `json:"long_output"       yaml:"long_output"`
}

const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Google    = "gemini"
)

const (
	// defaultNoAnswer is about 16,000 tokens: more prose than any recorded healthy session had without a tool call.
	defaultNoAnswer = 64 << 10
	minNoAnswer     = 1 << 10
	maxNoAnswer     = 16 << 20
	maxPrice        = 10_000 // above every published price; catches prices per token or in cents
)

// Vendor is the company that defined a protocol. KeyVariable and URLVariable are its usual environment variables.
type Vendor struct{ Protocol, URL, KeyVariable, URLVariable string }

func Vendors() []Vendor {
	return []Vendor{
		{OpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		{Google, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
	}
}

// VendorOf returns a protocol's vendor, or the zero Vendor.
func VendorOf(protocol string) Vendor {
	for _, v := range Vendors() {
		if v.Protocol == protocol {
			return v
		}
	}
	return Vendor{}
}

// NewProvider returns a provider with its defaults.
func NewProvider(name, protocol string) Provider {
	p := Provider{Name: name, Protocol: protocol, BaseURL: VendorOf(protocol).URL}
	p.setDefaults()
	return p
}

func (p *Provider) setDefaults() { p.NoAnswerBytes = defaultNoAnswer }

func (s *source) validateProviders(providers []Provider) {
	first := map[string]int{}
	for i := range providers {
		p := &providers[i]
		key := fmt.Sprintf("providers[%d]", i)
		s.validateName(key+".name", p.Name, "provider")
		if j, again := first[p.Name]; again && p.Name != "" {
			s.add(key+".name", "%q is also the name of providers[%d]", p.Name, j)
		}
		first[p.Name] = i
		s.required(key+".protocol", p.Protocol, OpenAI, Anthropic, Google)
		if p.BaseURL == "" {
			p.BaseURL = VendorOf(p.Protocol).URL
		} else {
			s.validateURL(key+".base_url", &p.BaseURL)
		}
		s.addIf(
			strings.ContainsFunc(p.Key.Reveal(), func(r rune) bool { return isControl(r) || r == ' ' }),
			key+".key",
			"holds a space or a control character; write the key alone",
		)
		between(s, key+".min_confidence", p.MinConfidence, 0, 1)
		s.addIf(
			p.MinConfidence > 0 && p.Protocol == Anthropic,
			key+".min_confidence",
			"does not work with anthropic, which returns no log-probabilities; remove it",
		)
		between(s, key+".no_answer_bytes", p.NoAnswerBytes, minNoAnswer, maxNoAnswer)
		s.validatePrices(key, p.Prices)
	}
}

func (s *source) validatePrices(key string, prices []Price) {
	for i, p := range prices {
		at := fmt.Sprintf("%s.prices[%d]", key, i)
		s.addIf(p.Model == "", at+".model", "is missing; write the model's name")
		for _, n := range []struct {
			name  string
			value float64
		}{{"input", p.Input}, {"cached_input", p.CachedInput}, {"cache_write", p.CacheWrite}, {"output", p.Output},
			{"long_input", p.LongInput}, {"long_cached_input", p.LongCachedInput}, {"long_output", p.LongOutput}} {
			s.addIf(
				outside(n.value, 0, maxPrice),
				at+"."+n.name,
				"%v is out of range; prices are in US dollars per million tokens, 0 to %d",
				n.value,
				maxPrice,
			)
		}
	}
}

// validateAccess checks how a backend signs in: provider, credential file, or variables.
func (s *source) validateAccess(key string, b Backend, providers []Provider) {
	if b.CredentialFile != "" {
		s.addIf(b.Provider != "", key+".credential_file", "is given together with provider; keep one of the two")
		s.addIf(
			b.Kind == Command,
			key+".credential_file",
			"is for %s only; use env or a provider for a command",
			listed(CLIs(), "and"),
		)
	}
	if b.Provider == "" {
		s.addIf(
			b.Kind == OpenCode && b.Model == "",
			key+".model",
			"is missing; without a provider, opencode needs PROVIDER/MODEL, such as anthropic/claude-sonnet-4-5",
		)
		return
	}
	want := ProtocolOf(b.Kind)
	var usable []string
	for _, p := range providers {
		fits := want == "" || p.Protocol == want
		switch {
		case p.Name == b.Provider:
			s.addIf(
				!fits && p.Protocol != "",
				key+".provider",
				"%s has protocol %s, but %s needs %s",
				quote(p.Name),
				p.Protocol,
				b.Kind,
				want,
			)
			return
		case p.Name == "", slices.Contains(usable, p.Name):
		case fits:
			usable = append(usable, p.Name)
		}
	}
	s.addIf(len(usable) == 0, key+".provider", "%s is missing from providers; add it there", s.found(key+".provider"))
	s.add(key+".provider", "%s is not one of providers; use %s", s.found(key+".provider"), orList(usable))
}

func (c Server) Provider(name string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}
