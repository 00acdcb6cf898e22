package gateway

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
)

// Anthropic's factors of cache writes, by its price list of 2025: of the price of
// input where none of its own is set, and for a cache that is kept for an hour.
const (
	writeFactor = 1.25
	hourFactor  = 1.6
)

func writePrice(p config.Price) float64 { return cmp.Or(p.CacheWrite, p.Input*writeFactor) }

// dated is what may follow a model's name without making it another model:
// -20250929, -2025-08-07, -001, @20250929, -latest.
var dated = regexp.MustCompile(`^[-@](?:latest|\d[\d-]{1,9})$`)

// priceOf finds the price of a model; of several the last counts. Only a date or a version number may follow
// the name of the list: gpt-5-mini is not priced as gpt-5.
func priceOf(model string, list []config.Price) (config.Price, bool) {
	var best config.Price
	for _, p := range slices.Backward(list) {
		if p.Model == model {
			return p, true
		}
		if rest, ok := strings.CutPrefix(model, p.Model); ok && dated.MatchString(rest) && len(p.Model) > len(best.Model) {
			best = p
		}
	}
	return best, best.Model != ""
}

// dearest is a price that no model of the list exceeds.
func dearest(list []config.Price) (top config.Price) {
	for _, p := range list {
		top.Input = max(top.Input, p.Input)
		top.CachedInput = max(top.CachedInput, p.CachedInput)
		top.CacheWrite = max(top.CacheWrite, writePrice(p))
		top.Output = max(top.Output, p.Output)
	}
	return top
}

// cost is what tokens cost in USD. Input includes the cached and the written.
func (t tokens) cost(p config.Price) float64 {
	fresh := max(t.input-t.cached-t.written, 0)
	written := float64(t.written) + float64(t.forHour)*(hourFactor-1)
	return (float64(fresh)*p.Input + float64(t.cached)*p.CachedInput + written*writePrice(p) + float64(t.output)*p.Output) / 1e6
}
