package main

import (
	"context"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
)

const (
	// hmacAim and referenceAim are how many times as fast as these the
	// fingerprint should be.
	hmacAim      = 0.15
	referenceAim = 30.0
	// fingerprintRounds is how often the benchmarks run; each round gives ratios
	// of its own.
	fingerprintRounds = 3
)

// benchmarkLine matches the speed in a line such as
// BenchmarkHMAC/log-2    1234    567 ns/op    890.12 MB/s.
var benchmarkLine = regexp.MustCompile(`(?m)^Benchmark(Fingerprint|Reference|HMAC)/(words|log)\S*\s.*\s([0-9.]+) MB/s`)

// fingerprintRows runs the benchmarks of package policy, whose tests hold the
// regexps that define the fingerprint, and compares the speeds on the same text.
func fingerprintRows(ctx context.Context) ([]row, error) {
	hmac, reference := map[string][]float64{}, map[string][]float64{}
	texts := []string{"words", "log"}
	for range fingerprintRounds {
		cmd := exec.CommandContext(ctx, "go", "test", "-run", "^$", "-bench", "Fingerprint|Reference|HMAC", "-benchtime", "200ms", "github.com/pawlbot/pawl/policy")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return nil, fmt.Errorf("benchmark the fingerprint: %w\n%s", err, out)
		}
		speed := map[string]float64{}
		for _, m := range benchmarkLine.FindAllSubmatch(out, -1) {
			if speed[string(m[1])+string(m[2])], err = strconv.ParseFloat(string(m[3]), 64); err != nil {
				return nil, err
			}
		}
		for _, t := range texts {
			own, of, than := speed["Fingerprint"+t], speed["HMAC"+t], speed["Reference"+t]
			if own == 0 || of == 0 || than == 0 {
				return nil, fmt.Errorf("benchmark the fingerprint: a speed is missing\n%s", out)
			}
			hmac[t], reference[t] = append(hmac[t], own/of), append(reference[t], own/than)
		}
	}
	var rows []row
	for _, t := range texts {
		slices.Sort(hmac[t])
		slices.Sort(reference[t])
		h, r := hmac[t][fingerprintRounds/2], reference[t][fingerprintRounds/2]
		rows = append(rows,
			row{fmt.Sprintf("fingerprint of 1 MiB of %s, to HMAC-SHA256", t), fmt.Sprintf("%.2f ×", h), fmt.Sprintf("≥ %g ×", hmacAim), h >= hmacAim},
			row{fmt.Sprintf("fingerprint of 1 MiB of %s, to the regexps", t), fmt.Sprintf("%.0f ×", r), fmt.Sprintf("≥ %g ×", referenceAim), r >= referenceAim})
	}
	return rows, nil
}
