package policy

import "fmt"

// failedChecks is the part of rule 3 that bounds what failing checks of others can ask
// for. Each push has checks of its own, so without it an agent that cannot mend
// them would be asked again and again with no person in it.
func failedChecks(f Facts) (Decision, bool) {
	for _, t := range f.Fresh {
		if t.Source != FromCheckRun {
			return silent()
		}
	}
	if len(f.Fresh) == 0 {
		return silent()
	}
	n := 0
	for i := len(f.Attempts) - 1; i >= 0; i-- {
		a := f.Attempts[i]
		if a.NewInput && !a.ByChecks {
			break
		}
		if a.ByChecks {
			n++
		}
	}
	most := f.Limits.VerifyRetries
	if f.Limits.EscalateEffort {
		most++
	}
	if n < max(1, most) {
		return silent()
	}
	return stop("checks_failed", "Look at the failing checks; comment what to do.",
		fmt.Sprintf("the checks of others failed again after %s for them alone", plural(n, "attempt")))
}
