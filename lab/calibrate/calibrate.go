package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy/simhash"
)

// MaxFPR limits the share of different pairs that a recommended threshold calls similar. A false alarm may stop
// useful work; a missed repetition only costs one more attempt. 5 % is a convention.
const MaxFPR = 0.05

const rule = "the highest true positive rate with at most 5 % false positives; among equal rates the highest threshold"

// minTasks is the number of tasks of each label that are needed to show that a threshold is better. Five tasks all agree by
// chance with probability 1/32, more than the 2.5 % tail below a 95 % interval. For six tasks it is 1/64.
const minTasks = 6

// ErrNoPairs means that the input has no pairs.
var ErrNoPairs = errors.New("it has no pairs; write one JSON object a line: " +
	`{"view": "failure", "label": "same", "group": "task-1", "a": "…", "b": "…"}`)

// Options configure a measurement. With 0 resamples the intervals are unknown.
type Options struct {
	Threshold float64 // current threshold
	Seed      uint64
	Resamples int
}

// Measure reads all pairs and reports on each of their views. It returns the first error of the pairs, or ErrNoPairs.
func Measure(pairs iter.Seq2[Pair, error], o Options) (Report, error) {
	prints, empty := map[string][]scored{}, map[string]int{}
	for p, err := range pairs {
		if err != nil {
			return Report{}, err
		}
		s := scored{group: p.Group, same: p.Label == Same}
		var known bool
		if s.score, known = byPrint(p.View, p.A, p.B); !known {
			empty[p.View]++
		}
		prints[p.View] = append(prints[p.View], s)
	}
	r := Report{Seed: o.Seed, Resamples: o.Resamples, Rule: rule}
	for _, name := range Views() {
		if len(prints[name]) > 0 {
			v := measure(newScale(prints[name]), o)
			v.View, v.Empty = name, empty[name]
			v.Reservations = v.reservations()
			r.Views = append(r.Views, v)
		}
	}
	if len(r.Views) == 0 {
		return Report{}, ErrNoPairs
	}
	return r, nil
}

func measure(s scale, o Options) View {
	all, level := s.count(), s.level(o.Threshold)
	return View{
		N: all.same.n + all.different.n, Same: all.same.n, Different: all.different.n,
		Groups: len(s.tasks), SameGroups: s.with(true), DifferentGroups: s.with(false),
		AUC: Number(all.auc()), AUC95: s.interval(o, counts.auc), ROC: s.roc(all),
		Recommended: s.recommended(all, o), Current: s.cut(Number(o.Threshold), level, o), HeldOut: s.heldOut(level, o),
	}
}

// settable rounds a similarity down to two decimals. No other similarity of two fingerprints lies in between, because one
// bit is 1/64.
func settable(n Number) Number { return Number(math.Floor(float64(n)*100) / 100) }

// reservations returns why a view's numbers may be unreliable.
func (v View) reservations() []string {
	reasons := []string{}
	for _, label := range []struct {
		name  string
		tasks int
	}{{Same, v.SameGroups}, {Different, v.DifferentGroups}} {
		switch {
		case label.tasks == 0:
			reasons = append(reasons, fmt.Sprintf("no pair is labelled %s, so the curve and the recommendation are unknown", label.name))
		case label.tasks < minTasks:
			reasons = append(reasons, fmt.Sprintf("pairs labelled %s: from fewer than %d tasks, too few to show that a threshold is better", label.name, minTasks))
		}
	}
	if v.View == prose {
		reasons = append(reasons, "the agent's prose alone never decides, so this view changes no threshold")
	}
	if v.Empty > 0 {
		reasons = append(reasons, fmt.Sprintf("pairs with a text that has no words, counted as not similar: %d", v.Empty))
	}
	return reasons
}

// byPrint returns the similarity that policy uses. It is unknown if a text has no fingerprint.
func byPrint(view, a, b string) (similarity float64, known bool) {
	of := simhash.Fingerprint
	if view == "failure" {
		inA, inB := simhash.Frames(a), simhash.Frames(b)
		if len(inA) > 0 && len(inB) > 0 {
			return simhash.Shared(inA, inB), true
		}
		of = simhash.Failure
	}
	p, q := of(a), of(b)
	if p == 0 || q == 0 {
		return 0, false
	}
	return simhash.Similarity(p, q), true
}

// maxLine limits a line of input in bytes; a pair has two texts.
const maxLine = 64 << 20

const (
	Same      = "same"
	Different = "different"
)

// Pair is two attempts at one task in one view, with a label: whether the second repeats the first.
type Pair struct {
	View  string // one of Views
	Label string // Same or Different
	Group string // the task; its pairs are dependent
	A, B  string
}

// Views lists the data of an attempt: failure text, agent's prose, diff.
func Views() []string { return []string{"failure", prose, "diff"} }

// prose is the view of the agent's text about its work.
const prose = "revision"

// Read yields the pairs of a JSONL stream, which may be compressed with gzip. It stops at the first error, which names the
// line. It ignores blank lines and unknown keys.
func Read(r io.Reader) iter.Seq2[Pair, error] {
	return func(yield func(Pair, error) bool) {
		in := bufio.NewReader(r)
		if magic, _ := in.Peek(2); string(magic) == "\x1f\x8b" {
			z, err := gzip.NewReader(in)
			if err != nil {
				yield(Pair{}, fmt.Errorf("decompress: %w", err))
				return
			}
			in = bufio.NewReader(z)
		}
		lines := bufio.NewScanner(in)
		lines.Buffer(nil, maxLine)
		n := 1
		for ; lines.Scan(); n++ {
			if len(bytes.TrimSpace(lines.Bytes())) == 0 {
				continue
			}
			p, err := parse(lines.Bytes())
			if err != nil {
				yield(Pair{}, fmt.Errorf("line %d: %w", n, err))
				return
			}
			if !yield(p, nil) {
				return
			}
		}
		if err := lines.Err(); err != nil {
			yield(Pair{}, fmt.Errorf("line %d: %w", n, err))
		}
	}
}

// parse parses one line. It refuses unknown labels, because a misspelt label would skew the numbers.
func parse(line []byte) (Pair, error) {
	var row struct {
		View, Label, Group string
		A, B               *string
	}
	if err := json.Unmarshal(line, &row); err != nil {
		return Pair{}, fmt.Errorf("not a pair in JSON: %w", err)
	}
	switch {
	case !slices.Contains(Views(), row.View):
		return Pair{}, fmt.Errorf("view %.40q: use %s", row.View, strings.Join(Views(), ", "))
	case row.Label != Same && row.Label != Different:
		return Pair{}, fmt.Errorf("label %.40q: use %s or %s", row.Label, Same, Different)
	case row.Group == "":
		return Pair{}, fmt.Errorf("no group: name the task that both attempts worked on")
	case row.A == nil || row.B == nil:
		return Pair{}, fmt.Errorf("no text: a pair needs both a and b")
	}
	return Pair{row.View, row.Label, row.Group, *row.A, *row.B}, nil
}
