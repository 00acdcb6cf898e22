package config

import (
	"slices"
	"testing"
	"time"
)

func TestDatedModelsHaveThePriceOfTheModel(t *testing.T) {
	prices := []Price{{Model: "gpt-5", Input: 1}, {Model: "gpt-5-mini", Input: 2}, {Model: "claude-sonnet-4", Input: 3}}
	for model, want := range map[string]float64{
		"gpt-5": 1, "gpt-5-2025-08-07": 1, "gpt-5-mini": 2, "gpt-5-mini-2025-08-07": 2, "gpt-5-nano": 0, "gpt-5.1": 0, "gpt": 0, "": 0,
		"claude-sonnet-4-20250514": 3, "claude-sonnet-4@20250514": 3, "claude-sonnet-4-5-20250929": 0, "claude-sonnet-4-5": 0, "claude-sonnet-4-latest": 3, "claude-sonnet-42": 0,
	} {
		if got, known := PriceOf(model, prices); got.Input != want || known != (want > 0) {
			t.Errorf("%s: %v %v, want %v", model, got, known, want)
		}
	}
}

// TestModels checks that models.json names its source and date and has no impossible values.
func TestModels(t *testing.T) {
	c := Models()
	if day, err := time.Parse(time.DateOnly, c.AsOf); err != nil || day.Year() < 2026 || c.Source == "" {
		t.Errorf("as_of is %q and source %q, want a date since 2026 and a source", c.AsOf, c.Source)
	}
	vendors := map[string]int{}
	for _, m := range c.Models {
		vendors[m.Protocol]++
		if m.Model == "" || m.Output <= 0 || m.CachedInput > m.Input || m.Output > 200 || (m.LongOver > 0) != (m.LongInput >= m.Input && m.LongOutput >= m.Output) {
			t.Errorf("%+v has impossible values", m)
		}
	}
	for _, v := range Vendors() {
		if vendors[v.Protocol] < 5 {
			t.Errorf("%d models of %s, want at least 5", vendors[v.Protocol], v.Protocol)
		}
	}
}

func TestOperatorPricesOverrideVendorPrices(t *testing.T) {
	own := Price{Model: "gpt-5.5", Input: 1, Output: 2}
	vendor, other := NewProvider("a", OpenAI), Provider{Protocol: OpenAI, BaseURL: "https://router.example/v1"}
	if p, ok := PriceOf("gpt-5.5", vendor.PriceList()); !ok || p.Input <= own.Input {
		t.Errorf("price %+v, %v; want the vendor's", p, ok)
	}
	vendor.Prices, other.Prices = []Price{own}, []Price{own}
	for _, p := range []Provider{vendor, other} {
		if got, ok := PriceOf("gpt-5.5", p.PriceList()); !ok || got != own {
			t.Errorf("price %+v, %v; want the operator's", got, ok)
		}
	}
	if got := other.PriceList(); len(got) != 1 {
		t.Errorf("a router has %d prices of the vendor", len(got)-1)
	}
}

func TestRouterNamesOfModelsAreKnown(t *testing.T) {
	p := Provider{Efforts: map[string][]string{"mine": {"a", "b"}}}
	for name, want := range map[string][]string{
		"gpt-5-2025-08-07": {"minimal", "low", "medium", "high"}, "openai/gpt-5": {"minimal", "low", "medium", "high"},
		"anthropic/claude-opus-4.5": {"low", "medium", "high"}, "gpt-5-ultra": nil, "mine": {"a", "b"},
	} {
		if got := p.ModelNamed(name).Efforts; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
