package config

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// modelsFile holds what is known of the vendors' models, with its source and date. testdata/clis/models.mjs writes it.
//
//go:embed models.json
var modelsFile []byte

// Model is what is known of a model beside the protocol that its vendor serves it by.
type Model struct {
	Protocol string `json:"protocol"`
	Price
	Efforts     []string `json:"efforts"`      // that it takes, the least first; empty where it knows none
	LeastBudget *int64   `json:"least_budget"` // the least thinking budget in tokens; nil where it takes none
}

// Catalogue is the content of modelsFile.
type Catalogue struct {
	Source string  `json:"source"` // where the facts come from
	AsOf   string  `json:"as_of"`  // the day of the newest of them
	Models []Model `json:"models"`
}

// Models gives the facts that Pawl brings.
var Models = sync.OnceValue(func() (c Catalogue) {
	if err := json.Unmarshal(modelsFile, &c); err != nil {
		panic("config/models.json: " + err.Error()) // which TestModels would have found
	}
	return c
})

// PriceList are the prices of the provider's models: the vendor's list where the provider is the vendor itself, for
// others ask what they want, and after them the operator's own, which count.
func (p Provider) PriceList() []Price {
	var list []Price
	for _, m := range Models().Models {
		if m.Protocol == p.Protocol && strings.TrimRight(p.BaseURL, "/") == VendorOf(p.Protocol).URL {
			list = append(list, m.Price)
		}
	}
	return append(list, p.Prices...)
}

// ModelNamed is what is known of a model, by its own name or a router's such as anthropic/claude-opus-4.6; zero for an
// unknown one. The operator's efforts count before those of the file.
func (p Provider) ModelNamed(name string) (found Model) {
	short := name[strings.LastIndex(name, "/")+1:]
	if strings.HasPrefix(short, "claude") {
		short = strings.ReplaceAll(short, ".", "-")
	}
	for _, m := range Models().Models {
		if IsModel(short, m.Model) && len(m.Model) > len(found.Model) {
			found = m
		}
	}
	if own, ok := p.Efforts[name]; ok {
		found.Efforts = own
	}
	return found
}

// dated is what may follow a model's name without making it another model:
// -20250929, -2025-08-07, -001, @20250929, -latest. A single digit does: claude-opus-5-5 is not claude-opus-5.
var dated = regexp.MustCompile(`^[-@](?:latest|\d{3}|\d{8}|\d{4}-\d\d-\d\d)$`)

// IsModel reports whether a name is that of a model or of one of its dated versions: gpt-5-mini is not gpt-5.
func IsModel(name, model string) bool {
	rest, ok := strings.CutPrefix(name, model)
	if !ok || model == "" {
		return false
	}
	return rest == "" || dated.MatchString(rest)
}

// PriceOf finds the price of a model; of several the last counts.
func PriceOf(model string, list []Price) (best Price, ok bool) {
	for _, p := range slices.Backward(list) {
		if p.Model == model {
			return p, true
		}
		if IsModel(model, p.Model) && len(p.Model) > len(best.Model) {
			best = p
		}
	}
	return best, best.Model != ""
}
