package config

import (
	_ "embed"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// modelsFile holds facts about the vendors' models, with source and date. testdata/clis/models.mjs writes it.
//
//go:embed models.json
var modelsFile []byte

// Model holds facts about a vendor's model.
type Model struct {
	Protocol string `json:"protocol"`
	Price
	Efforts     []string `json:"efforts"`      // lowest first; may be empty
	LeastBudget *int64   `json:"least_budget"` // smallest thinking budget in tokens, or nil
}

type Catalogue struct {
	Source string  `json:"source"` // of the facts
	AsOf   string  `json:"as_of"`  // date of the newest fact
	Models []Model `json:"models"`
}

// Models returns the catalogue in models.json.
var Models = sync.OnceValue(func() (c Catalogue) {
	if err := json.Unmarshal(modelsFile, &c); err != nil {
		panic("config/models.json: " + err.Error()) // TestModels reads the file
	}
	return c
})

// PriceList returns the vendor's prices, if the provider is the vendor, then the operator's. Later prices win.
func (p Provider) PriceList() []Price {
	var list []Price
	for _, m := range Models().Models {
		if m.Protocol == p.Protocol && strings.TrimRight(p.BaseURL, "/") == VendorOf(p.Protocol).URL {
			list = append(list, m.Price)
		}
	}
	return append(list, p.Prices...)
}

// ModelNamed finds a model by its own or a router's name, such as anthropic/claude-opus-4.6, or returns zero. The
// operator's efforts override the file's.
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

// dated matches version suffixes: -20250929, -2025-08-07, -001, @20250929, -latest. A single digit names another
// model.
var dated = regexp.MustCompile(`^[-@](?:latest|\d{3}|\d{8}|\d{4}-\d\d-\d\d)$`)

// IsModel reports whether a name means a model or a dated version. gpt-5-mini is not gpt-5.
func IsModel(name, model string) bool {
	rest, ok := strings.CutPrefix(name, model)
	if !ok || model == "" {
		return false
	}
	return rest == "" || dated.MatchString(rest)
}

// PriceOf returns the last price with the model's exact name. Without one, it returns the undated model's price.
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
