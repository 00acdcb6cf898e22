package gateway

import (
	"fmt"
	"log/slog"
	"regexp"
	"strings"
)

// Protocol is the language that a provider speaks.
type Protocol string

// The protocols. OpenAI stands for Responses and chat completions.
const (
	OpenAI    Protocol = "openai"
	Anthropic Protocol = "anthropic"
	Gemini    Protocol = "gemini"
)

// Provider is where calls go, and with which key. Printing it in any way leaves
// the key out. An empty BaseURL means the vendor's own; an OpenAI base ends in
// /v1, the others do not have a version.
type Provider struct {
	Name     string
	Protocol Protocol
	BaseURL  string
	// Key is set in the protocol's own header; empty sends none, for a local
	// server that asks for none.
	Key string
	// Prices are by model name; a dated name finds the price of the plain one.
	Prices map[string]Price
}

// Price is in USD per million tokens. Output includes reasoning. CacheWrite is
// what writing to a cache for five minutes costs; zero means a quarter more than
// Input, as Anthropic has it, the only one to ask for it. A cache that is kept
// for an hour costs 1.6 times as much (twice the input there).
type Price struct {
	Input, CachedInput, CacheWrite, Output float64
}

// Anthropic's factors of cache writes, by its price list of 2025.
const (
	writeFactor = 1.25
	hourFactor  = 1.6
)

// write is the price of writing to a cache.
func (p Price) write() float64 {
	if p.CacheWrite == 0 {
		return p.Input * writeFactor
	}
	return p.CacheWrite
}

// String names the provider without its key.
func (p Provider) String() string {
	return fmt.Sprintf("%s (%s, %s)", p.Name, p.Protocol, p.base())
}

// Format keeps the key out of every verb of the fmt package.
func (p Provider) Format(f fmt.State, _ rune) { fmt.Fprint(f, p.String()) }

// MarshalText keeps the key out of JSON, YAML and zerolog.
func (p Provider) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// LogValue keeps the key out of slog.
func (p Provider) LogValue() slog.Value { return slog.StringValue(p.String()) }

// base is the URL that paths are appended to.
func (p Provider) base() string {
	if p.BaseURL != "" {
		return strings.TrimRight(p.BaseURL, "/")
	}
	switch p.Protocol {
	case Anthropic:
		return "https://api.anthropic.com"
	case Gemini:
		return "https://generativelanguage.googleapis.com"
	}
	return "https://api.openai.com/v1"
}

// dated is what may follow a model's name without making it another model:
// -20250929, -2025-08-07, -001, @20250929, -latest.
var dated = regexp.MustCompile(`^[-@](?:latest|\d[\d-]{1,9})$`)

// price finds the price of a model. gpt-5-mini is not priced as gpt-5: only a
// date or a version number may follow the name of the list.
func (p Provider) price(model string) (Price, bool) {
	if price, ok := p.Prices[model]; ok {
		return price, true
	}
	best, found := "", false
	for name := range p.Prices {
		if rest, ok := strings.CutPrefix(model, name); ok && dated.MatchString(rest) && len(name) >= len(best) {
			best, found = name, true
		}
	}
	return p.Prices[best], found
}

// dearest is a price that no model of the list exceeds. It answers false where
// there is no list.
func (p Provider) dearest() (Price, bool) {
	var top Price
	for _, price := range p.Prices {
		top.Input = max(top.Input, price.Input)
		top.CachedInput = max(top.CachedInput, price.CachedInput)
		top.CacheWrite = max(top.CacheWrite, price.write())
		top.Output = max(top.Output, price.Output)
	}
	return top, len(p.Prices) > 0
}

// of is what tokens cost in USD. Input includes the cached and the written.
func (p Price) of(t tokens) float64 {
	fresh := max(t.input-t.cached-t.written, 0)
	written := float64(t.written) + float64(t.forHour)*(hourFactor-1)
	return (float64(fresh)*p.Input + float64(t.cached)*p.CachedInput + written*p.write() + float64(t.output)*p.Output) / 1e6
}
