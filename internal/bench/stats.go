package main

import (
	"fmt"
	"slices"
	"time"
)

// quantile is the value that a share q of the measurements does not exceed
// (nearest rank). It sorts them.
func quantile(all []time.Duration, q float64) time.Duration {
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[min(int(q*float64(len(all))), len(all)-1)]
}

// ms writes a duration in milliseconds, with one digit below ten.
func ms(d time.Duration) string {
	v := float64(d) / float64(time.Millisecond)
	if v < 10 {
		return fmt.Sprintf("%.1f ms", v)
	}
	return fmt.Sprintf("%.0f ms", v)
}

// spread is the median and the 95th percentile for the table.
func spread(all []time.Duration) string {
	return fmt.Sprintf("median %s, p95 %s", ms(quantile(all, 0.5)), ms(quantile(all, 0.95)))
}

// middle is the median (nearest rank).
func middle(all []float64) float64 {
	sorted := slices.Sorted(slices.Values(all))
	return sorted[len(sorted)/2]
}

// minMedianMax writes the least, the median and the largest of some rounds.
func minMedianMax(all []float64, format string) string {
	return fmt.Sprintf(format+" / "+format+" / "+format, slices.Min(all), middle(all), slices.Max(all))
}
