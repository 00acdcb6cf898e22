package policy

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// TestEvidence is what the tests say of a change, apart from what the change did to them. It is the verdict on a
// verification that passed, by two more runs of the verify commands.
type TestEvidence struct {
	// Changed are the files on the tests' side that the change adds, edits or deletes, Removed the tests of the base that
	// no longer run (skipped or renamed ones as well): by name, where the runner names all, else the test files that are gone.
	Changed []string `json:"changed,omitempty"`
	Removed []string `json:"removed,omitempty"`
	// Edits says in words what was done on the tests' side.
	Edits []string `json:"edits,omitempty"`
	// AsTheyWere are the results over the change with the base's files of the tests' side, Without those over the base with
	// the change's. Each is nil where there was nothing to find out, or by Skipped.
	AsTheyWere []Verified `json:"as_they_were,omitempty"`
	Without    []Verified `json:"without,omitempty"`
	Skipped    string     `json:"skipped,omitempty"`
	// Adds says that there are new or edited tests, and Code that not only the tests' side was changed.
	Adds bool `json:"adds,omitempty"`
	Code bool `json:"code,omitempty"`
}

// maxVerified is how long verification may take, by which it is run twice more.
const maxVerified = 10 * time.Minute

// TestChange is what a change does to files: paths of those that it deletes, edits and adds. Of Manifests, package.json
// files, it edits the scripts.
type TestChange struct{ Deleted, Edited, Added, Manifests []string }

// NewTestEvidence looks at a change, and at the results of the verify commands on the base and on it.
func NewTestEvidence(side TestSide, c TestChange, base, now []Verified) *TestEvidence {
	e := &TestEvidence{}
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
				e.Code = true
			}
		}
		if of.did == "deletes" {
			e.Removed = tests
		} else {
			e.Adds = e.Adds || len(tests) > 0
		}
		e.did(of.did+" ", tests, "")
		e.did(of.did+" ", run, ", which verification runs")
	}
	e.did("edits the scripts of ", c.Manifests, ", which verification runs")
	gone, fewer := missing(base, now)
	if len(gone) > 0 {
		e.Removed = gone
		e.Edits = slices.Insert(e.Edits, 0, fmt.Sprintf("removes %s (%s)", Plural(len(gone), "test"), few(gone)))
	} else if fewer > 0 {
		e.Edits = slices.Insert(e.Edits, 0, "runs "+Plural(fewer, "test")+" fewer than before")
	}
	took := int64(0)
	for _, v := range now {
		took += v.MS
	}
	if took > maxVerified.Milliseconds() && len(e.Changed) > 0 {
		e.Skipped = fmt.Sprintf("what the tests say apart from that was not asked, since verification takes longer than %s", maxVerified)
	}
	return e
}

func (e *TestEvidence) did(what string, files []string, which string) {
	if len(files) > 0 {
		e.Changed = append(e.Changed, files...)
		e.Edits = append(e.Edits, what+few(files)+which)
	}
}

// few names the first of a list.
func few(all []string) string {
	s := strings.Join(all[:min(len(all), maxNamed)], ", ")
	if more := len(all) - maxNamed; more > 0 {
		s += fmt.Sprintf(" and %d more", more)
	}
	return s
}

// missing are the tests that ran on the base and do not run any more, or, where they are not known by name, how many
// fewer run.
func missing(base, now []Verified) (gone []string, fewer int) {
	ran := func(all []Verified) (names []string, count int) {
		for _, v := range all {
			names = slices.Concat(names, v.Ran)
			count += v.PassedTests + v.FailedTests
			if len(v.Ran) > 0 {
				names = slices.Concat(names, Names(v.Failing), v.Known, v.Flaky)
			}
		}
		return names, count
	}
	before, were := ran(base)
	after, are := ran(now)
	if len(before) == 0 || len(after) == 0 {
		return nil, were - are
	}
	there := map[string]bool{}
	for _, name := range after {
		there[name] = true
	}
	for _, name := range before {
		if !there[name] {
			gone, there[name] = append(gone, name), true
		}
	}
	return gone, 0
}

// Idle reports whether the new and edited tests of a change pass without it.
func (e *TestEvidence) Idle() bool {
	return e != nil && len(e.Without) > 0 && !slices.ContainsFunc(e.Without, func(v Verified) bool { return !v.Passed })
}

// Says are the sentences that people are told.
func (e *TestEvidence) Says() (all []string) {
	switch {
	case e == nil:
		return nil
	case len(e.Edits) == 0:
		return []string{"it touches no test"}
	}
	all = []string{"it " + strings.Join(e.Edits, "; ")}
	if e.Skipped != "" {
		return append(all, e.Skipped)
	}
	if len(e.AsTheyWere) > 0 {
		all = append(all, "with the tests as they were: "+sum(e.AsTheyWere))
	}
	switch {
	case len(e.Without) == 0:
	case e.Idle():
		all = append(all, "its new tests pass without the change, so they show nothing of it")
	default:
		all = append(all, "its new tests without the change: "+sum(e.Without))
	}
	return all
}

// sum says what commands came to in few words: how many tests pass, and which fail.
func sum(all []Verified) string {
	passed, failing := 0, []string(nil)
	for _, v := range all {
		passed += v.PassedTests
		failing = slices.Concat(failing, Names(v.Failing), v.Known)
	}
	var said []string
	if passed > 0 {
		said = append(said, fmt.Sprintf("%d pass", passed))
	}
	last := all[len(all)-1]
	switch {
	case len(failing) == 1:
		said = append(said, failing[0]+" fails")
	case len(failing) > 0:
		said = append(said, few(failing)+" fail")
	case !last.Passed || passed == 0:
		said = append(said, last.Command+" "+last.Result())
	}
	return strings.Join(said, ", ")
}
