package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

// Backend is an agent CLI with its account, model and effort.
type Backend struct {
	Name string   `yaml:"name"` // what maintainers and the repository's file call it
	Kind string   `yaml:"kind"` // one of CLIs, or command
	Argv []string `yaml:"argv"` // the command line of kind command, or replaces a CLI's name, which is looked up in PATH
	// Stream is plain or one of CLIs; plain for kind command and the kind's own otherwise.
	Stream string `yaml:"stream"`
	Model  string `yaml:"model"` // handed to the CLI; empty means the CLI's own default
	// SideModels are models that the agent may ask through the gateway beside Model and those that its CLI asks by itself.
	SideModels      []string `yaml:"side_models"`
	Effort          string   `yaml:"effort"`           // handed to the CLI; empty means the CLI's own default
	EscalatedEffort string   `yaml:"escalated_effort"` // the effort of the last recovery; empty means that there is none
	// Account names who pays: its backends share one usage limit. It defaults to the backend's name.
	Account string `yaml:"account"`
	// Provider names the provider that the agent reaches through the gateway,
	// which keeps the key; empty means that it signs in by itself.
	Provider string `yaml:"provider"`
	// CredentialFile is the file of an account's login, which the agent gets to read; empty for none.
	CredentialFile string        `yaml:"credential_file"`
	Env            []string      `yaml:"env"`             // the names of the environment variables that reach the agent
	Timeout        time.Duration `yaml:"timeout"`         // how long one attempt may take
	IdleTimeout    time.Duration `yaml:"idle_timeout"`    // how long the agent may print nothing
	StartupTimeout time.Duration `yaml:"startup_timeout"` // how long the agent may take to print its first byte
}

// raised is the next effort above one, empty where the kind's CLI knows none. Where no
// effort is named, most models of Claude Code think high and those of the others medium.
func raised(kind, effort string) string {
	known := Efforts(kind)
	at := slices.Index(known, cmp.Or(effort, CLIOf(kind).OwnEffort)) + 1
	if at == 0 || at == len(known) {
		return ""
	}
	return known[at]
}

// Plain is the stream of an agent that prints text.
const Plain = "plain"

// defaultTimeout is the time limit of one attempt. The others follow from the recorded runs: an agent that
// works prints at every tool call at least, and each CLI's first byte came within seconds.
const (
	defaultTimeout        = 90 * time.Minute
	defaultIdleTimeout    = 15 * time.Minute
	defaultStartupTimeout = 2 * time.Minute
	// maxTimeout keeps an attempt within a day, the span of the daily cap.
	maxTimeout = 24 * time.Hour
)

// NewBackend is the backend that {name: NAME, kind: KIND} gives in a file.
func NewBackend(name, kind string) Backend {
	b := Backend{Name: name, Kind: kind}
	b.setDefaults()
	b.complete(func(string) bool { return false })
	return b
}

// Program is the name or path of the backend's CLI.
func (b Backend) Program() string {
	if len(b.Argv) > 0 {
		return b.Argv[0]
	}
	return b.Kind
}

// setDefaults fills in what holds for every backend before one is decoded.
func (b *Backend) setDefaults() {
	b.Timeout, b.IdleTimeout, b.StartupTimeout = defaultTimeout, defaultIdleTimeout, defaultStartupTimeout
}

// complete fills in what follows from other fields once one is decoded.
func (b *Backend) complete(set func(key string) bool) {
	own := b.Kind
	if b.Kind == Command {
		own = Plain
	}
	b.Account, b.Stream = cmp.Or(b.Account, b.Name), cmp.Or(b.Stream, own)
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

// backendName is what can be written after /pawl use and shown in a table.
var backendName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// githubVariables hold GitHub credentials by convention. An agent that holds
// one acts as that person, past every limit of Pawl.
var githubVariables = []string{"GITHUB_TOKEN", "GH_TOKEN", "GITHUB_ENTERPRISE_TOKEN", "GH_ENTERPRISE_TOKEN"}

func (s *source) validateBackends(backends []Backend, providers []Provider) {
	s.addIf(len(backends) == 0, "backends", "is missing; name at least one agent, such as {name: codex, kind: codex}")
	first := map[string]int{}
	for i, b := range backends {
		key := fmt.Sprintf("backends[%d]", i)
		s.validateBackend(key, b)
		s.validateAccess(key, b, providers)
		// Maintainers type the name, so case must not decide between two.
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
			"differs from kind %s, which has its own stream; remove it, or use kind command",
			quote(b.Kind),
		)
	}
	for _, word := range []struct{ name, value string }{
		{"model", b.Model}, {"effort", b.Effort}, {"escalated_effort", b.EscalatedEffort}, {"account", b.Account},
	} {
		if strings.HasPrefix(word.value, "-") || strings.ContainsFunc(word.value, isControl) {
			s.add(
				key+"."+word.name,
				"%s starts with a dash or holds a control character; the agent would read it as something else",
				s.found(key+"."+word.name),
			)
		}
	}
	s.validateEnv(key, "env", b.Env)
	s.validateTimeouts(key, b)
}

func (s *source) validateName(key, name, of string) {
	s.addIf(name == "", key, "is missing; give each %s a name of its own", of)
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
			"%s is what %s is read from; an agent must not get it, so remove it here or use another variable there",
			name,
			user,
		)
		s.addIf(
			slices.Contains(githubVariables, name),
			at,
			"%s holds a GitHub credential; an agent must not get one, so remove it",
			name,
		)
		s.addIf(isOwnVariable(name, "HOME"), at, "%s is set by Pawl for each attempt; remove it", name)
	}
}

// holdsSecret reports whether the variable used at the key is Pawl's own
// business: the App's credentials, the database's password or a provider's key.
func holdsSecret(key string) bool {
	switch key {
	case "database", "server.metrics_token", "notify.url":
		return true
	}
	return strings.HasPrefix(key, "github.") || strings.HasPrefix(key, "providers[")
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

// Provider is a model provider that agents reach through the gateway; none of them gets the key.
type Provider struct {
	Name     string `yaml:"name"`     // what backends call it
	Protocol string `yaml:"protocol"` // openai, anthropic or gemini
	BaseURL  string `yaml:"base_url"` // where the provider's API is; empty means the vendor's own
	// Key is sent to the provider and to nobody else; empty for one that wants none, such as on this machine.
	Key    Secret  `yaml:"key"`
	Prices []Price `yaml:"prices"` // what tokens cost, beside the vendor's list (PriceList)
	// Efforts are the efforts of models that Pawl does not know, or knows otherwise, the least first.
	Efforts map[string][]string `yaml:"efforts"`
	// NoAnswerBytes is how much prose without a tool makes an answer none (Ladder.NoAnswerRetry).
	NoAnswerBytes int `yaml:"no_answer_bytes"`
	// MinConfidence is the least confidence that the model may have in such prose, from 0, which asks for none, to 1.
	MinConfidence float64 `yaml:"min_confidence"`
	// AllowRemote lets requests name what stands elsewhere: files, caches and answers at the provider, addresses.
	AllowRemote bool `yaml:"allow_remote"`
}

// KeySource tells an operator which key a provider gets: the environment variable, or the setting in the file.
func (p Provider) KeySource() string {
	if name := p.Key.Variable(); name != "" {
		return name + " (the key of provider " + p.Name + ")"
	}
	return "the key of provider " + p.Name + " in the configuration"
}

// Price is what tokens of a model and its dated versions cost, in US dollars per million.
type Price struct {
	Model       string  `json:"model"        yaml:"model"`
	Input       float64 `json:"input"        yaml:"input"`
	CachedInput float64 `json:"cached_input" yaml:"cached_input"`
	CacheWrite  float64 `json:"cache_write"  yaml:"cache_write"` // the price of input that the provider also caches; 0 means 1.25 times Input
	Output      float64 `json:"output"       yaml:"output"`
	// LongOver is the input, in tokens, above which a call has the prices that follow; 0 for no such bound.
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
	// defaultNoAnswer is some 16,000 tokens, above the longest prose without a tool in every healthy recorded
	// session.
	defaultNoAnswer = 64 << 10
	minNoAnswer     = 1 << 10
	maxNoAnswer     = 16 << 20
	maxPrice        = 10_000 // far above every published price per million tokens: a higher one is per token or in cents
)

// Vendor is who serves a protocol: where, and in which variables people keep its key and another address.
type Vendor struct{ Protocol, URL, KeyVariable, URLVariable string }

func Vendors() []Vendor {
	return []Vendor{
		{OpenAI, "https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"},
		{Anthropic, "https://api.anthropic.com", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"},
		{Google, "https://generativelanguage.googleapis.com", "GEMINI_API_KEY", "GOOGLE_GEMINI_BASE_URL"},
	}
}

// VendorOf is the vendor of a protocol; zero for a protocol that is not known.
func VendorOf(protocol string) Vendor {
	for _, v := range Vendors() {
		if v.Protocol == protocol {
			return v
		}
	}
	return Vendor{}
}

// NewProvider is the provider that {name: NAME, protocol: PROTOCOL} gives in a file.
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
			"the protocol anthropic tells no log-probabilities; leave it out",
		)
		between(s, key+".no_answer_bytes", p.NoAnswerBytes, minNoAnswer, maxNoAnswer)
		s.validatePrices(key, p.Prices)
	}
}

func (s *source) validatePrices(key string, prices []Price) {
	for i, p := range prices {
		at := fmt.Sprintf("%s.prices[%d]", key, i)
		s.addIf(p.Model == "", at+".model", "is missing; write the name of the model")
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

// validateAccess checks how a backend signs in: by a provider, a credential file, or variables.
func (s *source) validateAccess(key string, b Backend, providers []Provider) {
	if b.CredentialFile != "" {
		s.addIf(b.Provider != "", key+".credential_file", "is given together with provider; keep one of the two")
		s.addIf(
			b.Kind == Command,
			key+".credential_file",
			"is for %s; a command gets what it needs by env or a provider",
			listed(CLIs(), "and"),
		)
	}
	if b.Provider == "" {
		s.addIf(
			b.Kind == OpenCode && b.Model == "",
			key+".model",
			"is missing; opencode without a provider needs PROVIDER/MODEL, such as anthropic/claude-sonnet-4-5",
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
				"%s speaks %s, and %s needs one that speaks %s",
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
	s.addIf(len(usable) == 0, key+".provider", "%s is not described; add it under providers", s.found(key+".provider"))
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
