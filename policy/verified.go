package policy

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy/simhash"
)

// Verified is one verify command's result with its last lines of output.
type Verified struct {
	Command string `json:"command"`
	At      string `json:"at,omitempty"` // AtBase or AtChange
	Exit    int    `json:"exit"`
	// Passed: the command exited with 0 and no test failed, or every failure was Known or Flaky.
	Passed   bool   `json:"passed"`
	TimedOut bool   `json:"timed_out,omitempty"`
	Signal   string `json:"signal,omitempty"` // empty for none
	Output   string `json:"output,omitempty"`
	MS       int64  `json:"ms"`
	// Runner names the recognised test runners; empty for none.
	Runner string `json:"runner,omitempty"`
	// The runner's counts. NoTests means that it counted no test or could build nothing.
	PassedTests  int  `json:"passed_tests,omitempty"`
	FailedTests  int  `json:"failed_tests,omitempty"`
	SkippedTests int  `json:"skipped_tests,omitempty"`
	NoTests      bool `json:"no_tests,omitempty"`
	// Ran names the passed tests if the runner does. Receipts omit them.
	Ran []string `json:"ran,omitempty"`
	// Failing tests. Known ones failed in the same way on the base. Flaky ones passed in a second run.
	Failing []Failing `json:"failing,omitempty"`
	Known   []string  `json:"known,omitempty"`
	Flaky   []string  `json:"flaky,omitempty"`
	// Fixed tests failed on the base and now pass.
	Fixed []string `json:"fixed,omitempty"`
	// Broken is why the command cannot work, not even on the base.
	Broken string `json:"broken,omitempty"`
	// RefusedHosts lists HOST:PORT that the network policy refused on the change or on the base.
	RefusedHosts []string `json:"refused_hosts,omitempty"`
}

// The code that a command ran on.
const (
	AtBase   = "base"
	AtChange = "change"
)

// clean reports whether the command exited with 0 and no test failed, not even as on the base.
func (v Verified) clean() bool { return v.Passed && v.Exit == 0 && len(v.Known) == 0 }

func (v Verified) doubtful() bool { return !v.clean() || v.NoTests }

func (v Verified) Result() string { return v.result() + v.refused() }

// refused lists refused hosts of a failed command as a possible cause.
func (v Verified) refused() string {
	if len(v.RefusedHosts) == 0 || v.clean() {
		return ""
	}
	return "; refused: " + few(v.RefusedHosts)
}

func (v Verified) result() string {
	if !v.Passed {
		return v.failure()
	}
	switch {
	case v.asText():
		return fmt.Sprintf("exit code %d with the same output as before", v.Exit)
	case len(v.Known) > 0:
		return fmt.Sprintf("exit code %d, and %s as before", v.Exit, Plural(len(v.Known), "test")+" failed")
	case v.NoTests:
		return "exit code 0, and no test ran"
	}
	return "passed"
}

func (v Verified) failure() string {
	switch {
	case v.Broken != "":
		return "cannot work here: " + v.Broken
	case v.TimedOut:
		return "did not end in time"
	case v.Exit == 0:
		return strings.TrimSuffix("exit code 0, and yet "+Plural(v.FailedTests, "failure")+" reported: "+few(Names(v.Failing)), ": ")
	}
	return fmt.Sprintf("failed with exit code %d", v.Exit)
}

var noProgram = regexp.MustCompile(`(?m)^make(?:\[\d+\])?: \*\*\* .* Error 12[67]$|^\S*python[\d.]*: No module named \S+$`)

// Unable returns why a command verified nothing; empty if it verified something. On the base, the command or the
// machine is the cause.
func (v Verified) Unable() string {
	if v.TimedOut {
		return "it does not end in time"
	}
	if why := v.unfit(); why != "" {
		return why
	}
	switch {
	case !v.NoTests:
		return ""
	case len(v.Failing) > 0:
		return "the build is broken, " + v.Failing[0].Name
	}
	return "no test runs"
}

// unfit returns why a failed command cannot work on this machine; empty if it can.
func (v Verified) unfit() string {
	if v.Passed {
		return ""
	}
	switch v.Exit {
	case 126, 127:
		return fmt.Sprintf("exit code %d, a program is missing or may not be run", v.Exit)
	}
	if missing := noProgram.FindString(v.Output); missing != "" {
		return "a program is missing: " + missing
	}
	switch v.Exit {
	case 134, 137: // 128 + SIGABRT, such as Node out of memory, or + SIGKILL
		return "it is killed, as happens when memory runs out"
	}
	return ""
}

// Unable names the first command that verified nothing, and why; empty for none.
func Unable(all []Verified) string {
	for _, v := range all {
		if why := v.Unable(); why != "" {
			return v.broken(why)
		}
	}
	return ""
}

// maxCommand limits a command in a sentence, in characters.
const maxCommand = 60

func (v Verified) broken(why string) string {
	name := []rune(strings.Join(strings.Fields(v.Command), " "))
	if len(name) > maxCommand {
		name = append(name[:maxCommand-1], '…')
	}
	return string(name) + " cannot work here: " + why
}

// Compare classifies failures by the command's result on the base and by a second run on the same commit; either may
// be nil. Failures with the base's assertion are known; failures that passed the second time are flaky. Without test
// names, the whole output is compared.
func (v Verified) Compare(base, again *Verified) Verified {
	first := v.Failing
	v = v.flaky(again)
	if base == nil {
		return v
	}
	if base.Unable() != "" {
		if !v.Passed {
			v.Broken = v.Unable()
		}
		return v
	}
	var fresh []Failing
	for _, f := range v.Failing {
		if f.known(base, again) {
			v.Known = append(v.Known, f.Name)
		} else {
			fresh = append(fresh, f)
		}
	}
	v.Failing = fresh
	v.Fixed = append(v.Fixed, v.fixed(base, first)...)
	for _, host := range base.RefusedHosts {
		if !slices.Contains(v.RefusedHosts, host) {
			v.RefusedHosts = append(slices.Clip(v.RefusedHosts), host)
		}
	}
	named := len(first)
	if v.repeats(base) {
		v.Known = []string{v.Command}
		named = v.FailedTests // the same output has the same failures
	}
	v.Passed = v.Passed || v.failsAsOn(base, named)
	return v
}

// fixed lists the base's failures that no longer fail. A command that broke off, or could not build, fixed nothing.
func (v Verified) fixed(base *Verified, first []Failing) (names []string) {
	if v.TimedOut || v.Signal != "" {
		return nil
	}
	if slices.ContainsFunc(v.Failing, Failing.build) {
		return nil
	}
	for _, f := range base.Failing {
		if find(first, f.Name) == nil {
			names = append(names, f.Name)
		}
	}
	return names
}

// failsAsOn reports whether the command ended as on the base and nothing else failed. named counts the failures with
// names.
func (v Verified) failsAsOn(base *Verified, named int) bool {
	if len(v.Failing) > 0 || len(v.Known) == 0 {
		return false
	}
	if v.FailedTests > named {
		return false
	}
	if v.PassedTests+len(v.Flaky) < base.PassedTests {
		return false
	}
	if v.TimedOut {
		return false
	}
	return v.Signal == base.Signal && v.Exit == base.Exit
}

// flaky separates failures that passed in a second run.
func (v Verified) flaky(again *Verified) Verified {
	first := v.Failing
	switch {
	case again == nil:
	case again.Passed:
		v = *again
		v.Flaky = Names(first)
		if len(first) == 0 {
			v.Flaky = []string{v.Command}
		}
	case again.partOf(first):
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

func (v Verified) unnamed() bool {
	if v.Passed || len(v.Failing) > 0 {
		return false
	}
	return strings.TrimSpace(v.Output) != ""
}

// repeats reports whether a command without named tests printed the base's output.
func (v Verified) repeats(base *Verified) bool {
	if !v.unnamed() || !base.unnamed() {
		return false
	}
	if v.Runner != base.Runner {
		return false
	}
	now, before := Failing{Text: v.Output}, Failing{Text: base.Output}
	return v.Exit == base.Exit && now.sameAssertion(&before)
}

// asText reports whether the command's whole output was compared with the base's.
func (v Verified) asText() bool {
	if !v.Passed || v.Exit == 0 {
		return false
	}
	return slices.Equal(v.Known, []string{v.Command})
}

// partOf reports whether a second run failed only in some of the first failures. A run that broke off proves nothing.
func (v Verified) partOf(first []Failing) bool {
	if len(v.Failing) == 0 || v.FailedTests > len(v.Failing) {
		return false
	}
	if v.Unable() != "" {
		return false
	}
	return !slices.ContainsFunc(v.Failing, func(f Failing) bool { return find(first, f.Name) == nil })
}

// Failing is a failing test, or a failure before tests ran.
type Failing struct {
	// Name is stable between runs: it has no times, line numbers or temporary paths.
	Name string `json:"name"`
	// Text is the truncated assertion; may be empty.
	Text string `json:"text,omitempty"`
}

// noTest matches failures before tests ran.
var noTest = regexp.MustCompile(`\[(?:build|setup|compilation|import|suite) failed(?: to run)?\]$|^[^: ]+\.py$`)

func (f Failing) build() bool { return noTest.MatchString(f.Name) }

// Unbuilt reports whether there are failures and none is a test.
func Unbuilt(all []Failing) bool {
	return len(all) > 0 && !slices.ContainsFunc(all, func(f Failing) bool { return !f.build() })
}

// moves matches text that differs between equal failures: line numbers, temporary paths, addresses, measured times.
var moves = regexp.MustCompile(`(\.\w{1,5}):\d+(?::\d+)?|(?:/private)?/(?:tmp|var/tmp|var/folders)/[^\s:'"\])]+|\b0x[0-9a-fA-F]{6,16}\b|\b\d+(?:\.\d+ ?m?s|ms)\b`)

// sameAssertion reports whether two failures have the same assertion, or one is unknown.
func (f Failing) sameAssertion(other *Failing) bool {
	if f.Text == "" || other.Text == "" {
		return true
	}
	return f.assertion() == other.assertion()
}

// assertion returns the failure's text without parts that differ between runs.
func (f Failing) assertion() string {
	return simhash.Normalise(moves.ReplaceAllString(f.Text, "$1"))
}

func (f Failing) known(base, again *Verified) bool {
	before := find(base.Failing, f.Name)
	if before == nil {
		return false
	}
	if f.sameAssertion(before) {
		return true
	}
	if again == nil || f.build() {
		return false
	}
	// Assertions that differ between two runs of one commit cannot be compared.
	second := find(again.Failing, f.Name)
	return second != nil && !f.sameAssertion(second)
}

func find(all []Failing, name string) *Failing {
	if i := slices.IndexFunc(all, func(f Failing) bool { return f.Name == name }); i >= 0 {
		return &all[i]
	}
	return nil
}

func Names(all []Failing) []string { return each(all, func(f Failing) string { return f.Name }) }
