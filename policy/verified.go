package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Verified is the result of one verify command. Output holds its last lines.
type Verified struct {
	Command string `json:"command"`
	At      string `json:"at,omitempty"` // whose code it ran on: AtBase or AtChange
	Exit    int    `json:"exit"`
	// Passed says that it exited with 0, or that nothing failed but what failed in the
	// same way before Pawl began, or passed when it was run again.
	Passed   bool   `json:"passed"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Signal   string `json:"signal,omitempty"` // that ended it; empty for none
	Output   string `json:"output,omitempty"`
	MS       int64  `json:"ms"`
	// Runner names the test runners whose output was recognised; empty for none.
	Runner string `json:"runner,omitempty"`
	// PassedTests, FailedTests and SkippedTests are as the runner counts them, NoTests says that none
	// ran: it counted none, or nothing could be built.
	PassedTests  int  `json:"passed_tests,omitempty"`
	FailedTests  int  `json:"failed_tests,omitempty"`
	SkippedTests int  `json:"skipped_tests,omitempty"`
	NoTests      bool `json:"no_tests,omitempty"`
	// Ran are the names of the tests that passed, where the runner tells them. Receipts do without.
	Ran []string `json:"ran,omitempty"`
	// Failing are the failing tests. Those that failed in the same way before Pawl began
	// are Known instead, those that passed when they were run again at once Flaky.
	Failing []Failing `json:"failing,omitempty"`
	Known   []string  `json:"known,omitempty"`
	Flaky   []string  `json:"flaky,omitempty"`
	// Fixed are the names of those that failed before Pawl began, and do not any more.
	Fixed []string `json:"fixed,omitempty"`
	// Broken says why the command cannot work here, as it could not before Pawl began.
	Broken string `json:"broken,omitempty"`
	// RefusedHosts are what the command asked for in vain, here or where it failed before Pawl began, as HOST:PORT.
	RefusedHosts []string `json:"refused_hosts,omitempty"`
}

// Whose code a command ran on.
const (
	AtBase   = "base"
	AtChange = "change"
)

// contradicted is how many failures its runners reported of a command that exited with 0.
func (v Verified) contradicted() int {
	if !v.Passed || v.Exit != 0 {
		return 0
	}
	return max(0, v.FailedTests-len(v.Known))
}

// Result says what the command came to, as people are told it.
func (v Verified) Result() string { return v.result() + v.walled() }

// walled says what a command that failed was refused, which may be why.
func (v Verified) walled() string {
	if len(v.RefusedHosts) == 0 || v.Passed && v.Exit == 0 {
		return ""
	}
	return "; refused: " + few(v.RefusedHosts)
}

func (v Verified) result() string {
	switch {
	case v.asText():
		return fmt.Sprintf("exit code %d with the same output as before", v.Exit)
	case v.Passed && v.Exit != 0:
		return fmt.Sprintf("exit code %d, since %s as before", v.Exit, Plural(len(v.Known), "test")+" failed")
	case v.Passed && v.NoTests:
		return "exit code 0, and no test ran"
	case v.contradicted() > 0:
		return "exit code 0, and yet " + Plural(v.contradicted(), "failure") + " reported: " + few(Names(v.Failing))
	case v.Passed:
		return "passed"
	case v.Broken != "":
		return "cannot work here: " + v.Broken
	case v.TimedOut:
		return "did not end in time"
	}
	return fmt.Sprintf("failed with exit code %d", v.Exit)
}

// noProgram is how a program says that one which it was to start, or a module, is missing.
var noProgram = regexp.MustCompile(`(?m)^make(?:\[\d+\])?: \*\*\* .* Error 12[67]$|^\S*python[\d.]*: No module named \S+$`)

// Unable says why a command did not come to verify anything, empty where it did. On the
// base, that is the doing of the command or of the machine.
func (v Verified) Unable() string {
	switch {
	case v.TimedOut:
		return "it does not end in time"
	case !v.Passed && (v.Exit == 126 || v.Exit == 127):
		return fmt.Sprintf("exit code %d, a program is missing or may not be run", v.Exit)
	case !v.Passed && noProgram.MatchString(v.Output):
		return "a program is missing: " + noProgram.FindString(v.Output)
	case !v.Passed && (v.Exit == 134 || v.Exit == 137): // 128 + SIGABRT, as Node out of memory, or + SIGKILL
		return "it is killed, as where the memory is not enough"
	case v.NoTests && len(v.Failing) > 0:
		return "the build is broken, " + v.Failing[0].Name
	case v.NoTests:
		return "no test runs"
	}
	return ""
}

// Unable names the first of the commands that did not come to verify anything, and why;
// empty where all did.
func Unable(all []Verified) string {
	for _, v := range all {
		if why := v.Unable(); why != "" {
			return v.broken(why)
		}
	}
	return ""
}

// maxCommand bounds what is named of a command, in characters.
const maxCommand = 60

func (v Verified) broken(why string) string {
	name := []rune(strings.Join(strings.Fields(v.Command), " "))
	if len(name) > maxCommand {
		name = append(name[:maxCommand-1], '…')
	}
	return string(name) + " cannot work here: " + why
}

// Compare says what a result means, beside that of the same command on the base and that
// of a second run on the same commit; either is nil where it is not known. A test that
// fails with what its assertion said on the base is known, one that passed the second
// time is flaky, and the command passes where nothing else is wrong. Where no runner is
// understood, the output as a whole stands for an assertion.
func Compare(v Verified, base, again *Verified) Verified {
	first := v.Failing
	v = v.flaky(again)
	switch {
	case base == nil:
		return v
	case base.Unable() != "":
		if !v.Passed {
			v.Broken = v.Unable()
		}
		return v
	}
	var fresh []Failing
	for _, f := range v.Failing {
		before, second := find(base.Failing, f.Name), (*Failing)(nil)
		if again != nil && !f.build() {
			second = find(again.Failing, f.Name)
		}
		if before != nil && (f.says(before) || second != nil && !f.says(second)) {
			v.Known = append(v.Known, f.Name)
		} else {
			fresh = append(fresh, f)
		}
	}
	for _, f := range base.Failing {
		if find(first, f.Name) == nil && !v.TimedOut && v.Signal == "" && !slices.ContainsFunc(fresh, Failing.build) {
			v.Fixed = append(v.Fixed, f.Name)
		}
	}
	v.Failing = fresh
	for _, host := range base.RefusedHosts {
		if !slices.Contains(v.RefusedHosts, host) {
			v.RefusedHosts = append(slices.Clip(v.RefusedHosts), host)
		}
	}
	if v.repeats(base) {
		v.Known = []string{v.Command}
	}
	v.Passed = v.Passed || len(fresh) == 0 && len(v.Known) > 0 && v.FailedTests <= len(first) && !v.TimedOut &&
		v.PassedTests+len(v.Flaky) >= base.PassedTests && v.Exit == base.Exit && v.Signal == base.Signal
	return v
}

// flaky is the result with what passed in a second run told apart.
func (v Verified) flaky(again *Verified) Verified {
	first := v.Failing
	if again != nil && again.Passed {
		v = *again
		if v.Flaky = Names(first); len(first) == 0 {
			v.Flaky = []string{v.Command}
		}
	} else if again != nil && again.fewer(first) {
		v.Failing = nil
		for _, f := range first {
			if find(again.Failing, f.Name) != nil {
				v.Failing = append(v.Failing, f)
			} else {
				v.Flaky = append(v.Flaky, f.Name)
			}
		}
	}
	return v
}

// unread reports whether the command failed with an output that no test runner is known from.
func (v Verified) unread() bool {
	return !v.Passed && v.Runner == "" && v.FailedTests == 0 && len(v.Failing) == 0 && strings.TrimSpace(v.Output) != ""
}

// repeats reports whether a command of which no runner is known says what it said on the base.
func (v Verified) repeats(base *Verified) bool {
	return v.unread() && base.unread() && v.Exit == base.Exit && (Failing{Text: v.Output}).says(&Failing{Text: base.Output})
}

// asText reports whether the command fails as on the base by its output as a text. It goes by its own name.
func (v Verified) asText() bool {
	return v.Passed && v.Exit != 0 && slices.Equal(v.Known, []string{v.Command})
}

// fewer reports whether a second run failed in some of the same failures and in nothing else, so that the others
// passed: one that broke off says nothing of them.
func (v Verified) fewer(first []Failing) bool {
	return len(v.Failing) > 0 && v.Unable() == "" && v.FailedTests <= len(v.Failing) &&
		!slices.ContainsFunc(v.Failing, func(f Failing) bool { return find(first, f.Name) == nil })
}

// Failing is a failing test, or something that failed before its tests ran.
type Failing struct {
	// Name is the same in the next run: without times, line numbers and temporary paths.
	Name string `json:"name"`
	// Text is that of the assertion, cut; it may be empty.
	Text string `json:"text,omitempty"`
}

// noTest matches the names of what failed before its tests ran.
var noTest = regexp.MustCompile(`\[(?:build|setup|compilation|import|suite) failed(?: to run)?\]$|^[^: ]+\.py$`)

func (f Failing) build() bool { return noTest.MatchString(f.Name) }

// Unbuilt reports whether there are failures, of which none is a test.
func Unbuilt(all []Failing) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(f Failing) bool { return !f.build() })
}

// moves matches what differs between two runs that fail in the same way, beside what a
// fingerprint leaves out: line numbers, temporary paths, addresses, measured times.
var moves = regexp.MustCompile(`(\.\w{1,5}):\d+(?::\d+)?|(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s:'"\])]+|\b0x[0-9a-fA-F]{6,16}\b|\b\d+(?:\.\d+ ?m?s|ms)\b`)

// says reports whether two failures of a test have the same assertion, as far as both are
// known.
func (f Failing) says(other *Failing) bool {
	text := func(s string) string { return simhash.Normalise(moves.ReplaceAllString(s, "$1")) }
	return f.Text == "" || other.Text == "" || f.Text == other.Text || text(f.Text) == text(other.Text)
}

func find(all []Failing, name string) *Failing {
	if i := slices.IndexFunc(all, func(f Failing) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

// Names are the names of failures.
func Names(all []Failing) []string { return each(all, func(f Failing) string { return f.Name }) }
