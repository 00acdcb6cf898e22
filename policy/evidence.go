package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"
)

// TestEvidence is the second verdict on a verification that passed: what the tests say apart from the change's own
// edits to them. It takes two more runs of the verify commands.
type TestEvidence struct {
	// Changed lists the test files that the change adds, edits or deletes. Removed lists the base's tests that no
	// longer run (also skipped or renamed): by test name if the runner names all, else by deleted file.
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Edits describes the changes to the tests.
	Edits []string `json:"edits,omitempty"`
	// AsTheyWere are the results of the change with the base's test files, Without the base's results with the
	// change's test files. Each is nil if not needed, or as Skipped says.
	AsTheyWere []Verified `json:"as_they_were,omitempty"`
	Without    []Verified `json:"without,omitempty"`
	// Fewer is how many fewer tests ran with the base's test files than on the base: code can end or mislead its
	// runner.
	Fewer   int    `json:"fewer,omitempty"`
	Skipped string `json:"skipped,omitempty"`
	// Asks says that Without is needed: there are new or edited tests and other changes.
	Asks bool `json:"-"`
}

// maxVerified is how long verification may take for the two extra runs.
const maxVerified = 10 * time.Minute

// TestChange lists the paths that a change deletes, edits and adds. In Manifests it edits how tests are run.
type TestChange struct{ Deleted, Edited, Added, Manifests []string }

// NewTestEvidence starts from a change and the results of the verify commands on the base and on the change.
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
		e.Skipped = fmt.Sprintf("what the tests say apart from that was not asked, since verification takes longer than %.0f minutes", maxVerified.Minutes())
	}
	return e
}

// holdsTests reports whether a test file holds tests rather than shared code or configuration.
func holdsTests(file string) bool { return !named(path.Base(file), runnerFiles) }

// Count compares how many of the base's tests ran on the change.
func (e *TestEvidence) Count(base, now []Verified) { e.Fewer = fewer(base, now) }

// WithoutChange takes the results on the base with the change's test files, and on the change, now. A test that
// fails only without the change proves the change, even if it failed before.
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

// fewer is how many fewer tests the commands ran than on the base. It skips runners that count failures alone, as
// go test does, and commands that ran no test on one side.
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

// countsFailuresAlone reports whether the command's runner counted no passed test in either run.
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

// maxNamed is how many of a list a reason names.
const maxNamed = 5

func few(all []string) string {
	s := strings.Join(all[:min(len(all), maxNamed)], ", ")
	if more := len(all) - maxNamed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// tally is what the commands ran: how many tests they skipped, and the test names if the runners name all in both
// runs.
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

// Says are the sentences that users read.
func (e *TestEvidence) Says() []string {
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

// sum summarises results: how many tests pass, and which fail.
func sum(all []Verified) string {
	passed, failing := 0, []string(nil)
	for _, v := range all {
		passed += v.PassedTests
		failing = slices.Concat(failing, Names(v.Failing), v.Known)
	}
	said := fmt.Sprintf("%d pass", passed)
	last := all[len(all)-1]
	unexplained := !last.Passed || passed == 0 // by the numbers
	switch {
	case len(failing) > 0:
		fails := " fail"
		if len(failing) == 1 {
			fails = " fails"
		}
		said += ", " + few(failing) + fails
	case unexplained:
		said += ", " + last.Command + " " + last.Result()
	}
	return strings.TrimPrefix(said, "0 pass, ")
}
