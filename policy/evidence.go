package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// TestEvidence judges a passed verification without the change's own test edits. It needs up to two more verify runs.
type TestEvidence struct {
	// Changed lists test files that the change adds, edits or deletes. Removed lists the base's tests that no longer
	// run, by test name if the runner names all, else by deleted file.
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	Edits   []string `json:"edits,omitempty"`
	// AsTheyWere has the results of the change with the base's test files. Without has the base's results with the
	// change's test files. Each is nil if it did not run.
	AsTheyWere []Verified `json:"as_they_were,omitempty"`
	Without    []Verified `json:"without,omitempty"`
	// Fewer counts the tests that no longer run with the base's test files: changed code can stop its own test runner.
	Fewer   int    `json:"fewer,omitempty"`
	Skipped string `json:"skipped,omitempty"`
	// Asks requests Without: the change has new or edited tests and other changes.
	Asks bool `json:"-"`
}

// maxVerified is the longest verification for which Pawl adds two runs.
const maxVerified = 10 * time.Minute

// TestChange lists the paths that a change deletes, edits and adds. Manifests lists changed test settings.
type TestChange struct{ Deleted, Edited, Added, Manifests []string }

// NewTestEvidence compares the change's verify results with the base's.
func NewTestEvidence(side TestSide, c TestChange, base, now []Verified) *TestEvidence {
	e := &TestEvidence{}
	adds, code := false, false
	for _, of := range []struct {
		did   string
		paths []string
	}{{"deletes", c.Deleted}, {"edits", c.Edited}, {"adds", c.Added}} {
		var tests, run []string
		for _, p := range of.paths {
			switch {
			case TestFile(p):
				tests = append(tests, p)
			case side.Has(p):
				run = append(run, p)
			default:
				code = true
			}
		}
		if of.did == "deletes" {
			e.Removed = tests
		} else {
			if slices.ContainsFunc(tests, holdsTests) {
				adds = true
			}
		}
		e.did(of.did+" ", tests, "")
		e.did(of.did+" ", run, ", which verification runs")
	}
	e.Asks = adds && code
	scripts := slices.DeleteFunc(slices.Clone(c.Manifests), func(p string) bool { return path.Base(p) != manifest })
	e.did("edits the scripts of ", scripts, ", which verification runs")
	e.did("edits the settings of tests in ", slices.DeleteFunc(slices.Clone(c.Manifests), func(p string) bool { return path.Base(p) == manifest }), "")
	if len(e.Changed) == 0 {
		e.Count(base, now)
	}
	before, after := ran(base, now), ran(now, base)
	gone := slices.DeleteFunc(before.names, func(name string) bool { return after.has[name] })
	removes := "removes "
	if after.skipped > before.skipped {
		removes = "removes or skips "
	}
	switch {
	case len(gone) > 0:
		e.Removed = gone
		e.Edits = slices.Insert(e.Edits, 0, removes+Plural(len(gone), "test")+" ("+few(gone)+")")
	case len(before.has) == 0:
		if n := fewer(base, now); n > 0 {
			e.Edits = slices.Insert(e.Edits, 0, "runs "+Plural(n, "test")+" fewer than before")
		}
	}
	if after.took > maxVerified && len(e.Changed) > 0 {
		e.Skipped = fmt.Sprintf("the tests were not also run without those edits, since verification takes longer than %.0f minutes", maxVerified.Minutes())
	}
	return e
}

// holdsTests reports whether a test file has tests, not only shared code or configuration.
func holdsTests(file string) bool { return !named(path.Base(file), runnerFiles) }

func (e *TestEvidence) Count(base, now []Verified) { e.Fewer = fewer(base, now) }

// WithoutChange stores the results on the base with the change's test files. now has the change's results. A test
// that fails only without the change proves the change.
func (e *TestEvidence) WithoutChange(all, now []Verified) {
	stays := Receipt{Verify: now}.Known()
	for i := range all {
		v := &all[i]
		for _, name := range v.Known {
			if !slices.Contains(stays, name) {
				v.Passed, v.Failing = false, append(v.Failing, Failing{Name: name})
			}
		}
		v.Known = slices.DeleteFunc(v.Known, func(name string) bool { return !slices.Contains(stays, name) })
	}
	e.Without = all
}

// fewer counts the tests that ran on the base and no longer run. Runners that count only failures are skipped.
func fewer(base, now []Verified) (n int) {
	for _, was := range base {
		at := slices.IndexFunc(now, func(v Verified) bool { return v.Command == was.Command })
		if at < 0 || was.NoTests {
			continue
		}
		is := now[at]
		if was.countsFailuresAlone(is) {
			continue
		}
		n += was.PassedTests + was.FailedTests - is.PassedTests - is.FailedTests
	}
	return max(0, n)
}

// countsFailuresAlone reports whether the runner, such as go test, counted no passed test in either run.
func (v Verified) countsFailuresAlone(later Verified) bool {
	if v.Runner == "" || v.Runner != later.Runner {
		return false
	}
	return v.PassedTests+later.PassedTests == 0 && !later.NoTests
}

func (e *TestEvidence) did(what string, files []string, which string) {
	if len(files) > 0 {
		e.Changed = append(e.Changed, files...)
		e.Edits = append(e.Edits, what+few(files)+which)
	}
}

// maxNamed limits the names that a reason lists.
const maxNamed = 5

func few(all []string) string {
	s := strings.Join(all[:min(len(all), maxNamed)], ", ")
	if more := len(all) - maxNamed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// tally counts skipped tests and lists test names if the runners name all tests in both runs.
type tally struct {
	skipped int
	names   []string
	has     map[string]bool
	took    time.Duration
}

func ran(all, other []Verified) tally {
	t := tally{has: map[string]bool{}}
	for i, v := range all {
		t.skipped, t.took = t.skipped+v.SkippedTests, t.took+time.Duration(v.MS)*time.Millisecond
		if len(v.Ran) == 0 || i >= len(other) || len(other[i].Ran) == 0 {
			continue
		}
		for _, name := range slices.Concat(v.Ran, Names(v.Failing), v.Known, v.Flaky) {
			if !t.has[name] {
				t.has[name], t.names = true, append(t.names, name)
			}
		}
	}
	return t
}

// Sentences describes the evidence for users.
func (e *TestEvidence) Sentences() []string {
	switch {
	case e == nil:
		return nil
	case len(e.Edits) == 0:
		return nil
	}
	all := []string{"it " + strings.Join(e.Edits, "; ")}
	if e.Skipped != "" {
		all = append(all, e.Skipped)
	}
	if len(e.AsTheyWere) > 0 {
		fewer := ""
		if e.Fewer > 0 {
			fewer = ", " + Plural(e.Fewer, "test") + " fewer than before"
		}
		all = append(all, "with the tests as they were: "+sum(e.AsTheyWere)+fewer)
	}
	switch {
	case len(e.Without) == 0:
	case (Receipt{Verify: e.Without}).Failing():
		all = append(all, "its new tests without the change: "+sum(e.Without))
	default:
		all = append(all, "its new tests pass without the change, so they show nothing of it")
	}
	return all
}

// sum describes results: how many tests pass, and which fail.
func sum(all []Verified) string {
	passed, failing := 0, []string(nil)
	for _, v := range all {
		passed += v.PassedTests
		failing = slices.Concat(failing, Names(v.Failing), v.Known)
	}
	text := fmt.Sprintf("%d pass", passed)
	last := all[len(all)-1]
	unexplained := !last.Passed || passed == 0
	switch {
	case len(failing) > 0:
		fails := " fail"
		if len(failing) == 1 {
			fails = " fails"
		}
		text += ", " + few(failing) + fails
	case unexplained:
		text += ", " + last.Command + " " + last.Result()
	}
	return strings.TrimPrefix(text, "0 pass, ")
}
