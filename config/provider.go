package config

import (
	"fmt"
	"slices"
	"strings"
)

// Provider is a model provider that agents reach through the gateway; none of them gets the key.
type Provider struct {
	Name     string `yaml:"name"`     // what backends call it
	Protocol string `yaml:"protocol"` // openai, anthropic or gemini
	BaseURL  string `yaml:"base_url"` // where the provider's API is; empty means the vendor's own
	// Key is sent to the provider and to nobody else; empty for one that wants none, such as on this machine.
	Key    Secret  `yaml:"key"`
	Prices []Price `yaml:"prices"` // what tokens cost; without them the cost of a model is unknown
	// NoAnswerBytes is how much prose and reasoning without a tool makes an answer none (Ladder.NoAnswerRetry).
	NoAnswerBytes int `yaml:"no_answer_bytes"`
}

// Price is what tokens of a model and its dated versions cost, in US dollars per million.
type Price struct {
	Model       string  `yaml:"model"`
	Input       float64 `yaml:"input"`
	CachedInput float64 `yaml:"cached_input"`
	CacheWrite  float64 `yaml:"cache_write"` // the price of input that the provider also caches; 0 means 1.25 times Input
	Output      float64 `yaml:"output"`
}

// The protocols of providers.
const (
	OpenAI    = "openai"
	Anthropic = "anthropic"
	Google    = "gemini"
)

const (
	// defaultNoAnswer is some 16,000 tokens, above the longest stretch without a tool in every healthy recorded
	// session.
	defaultNoAnswer = 64 << 10
	minNoAnswer     = 1 << 10
	maxNoAnswer     = 16 << 20
	maxPrice        = 10_000 // far above every published price per million tokens: a higher one is per token or in cents
)

// Vendor is who serves a protocol: where, and in which variables people keep its key and another address.
type Vendor struct{ Protocol, URL, KeyVariable, URLVariable string }

// Vendors are those of all protocols.
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

// setDefaults fills in what holds for every provider before one is decoded.
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
		if k := p.Key.Reveal(); strings.ContainsFunc(k, isControl) || strings.ContainsRune(k, ' ') {
			s.add(key+".key", "holds a space or a control character; write the key alone")
		}
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
		}{{"input", p.Input}, {"cached_input", p.CachedInput}, {"cache_write", p.CacheWrite}, {"output", p.Output}} {
			s.addIf(n.value < 0 || n.value > maxPrice, at+"."+n.name, "%v is out of range; prices are in US dollars per million tokens, 0 to %d", n.value, maxPrice)
		}
	}
}

// validateAccess checks how a backend signs in: by a provider, a credential file, or variables.
func (s *source) validateAccess(key string, b Backend, providers []Provider) {
	if b.CredentialFile != "" {
		switch {
		case b.Provider != "":
			s.add(key+".credential_file", "is given together with provider; keep one of the two")
		case b.Kind == Command:
			s.add(key+".credential_file", "is for codex, claude, gemini and opencode; a command gets what it needs by env or a provider")
		}
	}
	s.addIf(b.Provider == "" && b.Kind == OpenCode && b.Model == "", key+".model", "is missing; opencode without a provider needs PROVIDER/MODEL, such as anthropic/claude-sonnet-4-5")
	if b.Provider == "" {
		return
	}
	want := ProtocolOf(b.Kind)
	var usable []string
	for _, p := range providers {
		fits := want == "" || p.Protocol == want
		switch {
		case p.Name == b.Provider:
			s.addIf(!fits && p.Protocol != "", key+".provider", "%s speaks %s, and %s needs one that speaks %s", quote(p.Name), p.Protocol, b.Kind, want)
			return
		case fits && p.Name != "" && !slices.Contains(usable, p.Name):
			usable = append(usable, p.Name)
		}
	}
	if len(usable) == 0 {
		s.add(key+".provider", "%s is not described; add it under providers", s.found(key+".provider"))
		return
	}
	s.add(key+".provider", "%s is not one of providers; use %s", s.found(key+".provider"), orList(usable))
}

// ProtocolOf is the protocol that a kind needs; empty where any will do.
func ProtocolOf(kind string) string {
	return map[string]string{Codex: OpenAI, Claude: Anthropic, Gemini: Google}[kind]
}

// DefaultModel is the model of a backend that names none, for kinds that cannot do without: gemini asks a model
// which to take, for up to 75 s, and opencode refuses to start. The names are the vendors' general ones for
// coding. Empty where the CLI has a default of its own or nobody can know.
func DefaultModel(kind, protocol string) string {
	switch {
	case kind == Gemini, kind == OpenCode && protocol == Google:
		return "gemini-2.5-pro"
	case kind == OpenCode && protocol == OpenAI:
		return "gpt-5"
	case kind == OpenCode && protocol == Anthropic:
		return "claude-sonnet-4-5"
	}
	return ""
}

// Provider returns the provider of that name.
func (c Server) Provider(name string) (Provider, bool) {
	for _, p := range c.Providers {
		if p.Name == name {
			return p, true
		}
	}
	return Provider{}, false
}
