package checkrun

// outlook says what happens next and what a person can do, one line each.
func outlook(f Facts) []string {
	lines := []string{"**Next:** " + next(f)}
	if you := can(f); you != "" {
		lines = append(lines, "**You can:** "+you)
	}
	return lines
}

func next(f Facts) string {
	switch f.State {
	case Running:
		return "when the attempt ends, Pawl compares the tree, verifies, and pushes what holds or decides again."
	case Waiting:
		if f.Rule == "probe" || f.Rule == "crowded" {
			return "Pawl looks again by itself every few seconds."
		}
		if f.Until.IsZero() {
			return "Pawl goes on by itself when something happens here."
		}
		return "Pawl goes on by itself at " + Instant(f.Now, f.Until) + " (written at " + Instant(f.Now, f.Now) + ")."
	case Done:
		if f.PullURL == "" && !f.IsPull {
			return "nothing runs until somebody asks for more."
		}
		return "the pull request waits for review; a remark on it leads to another attempt."
	case Failed:
		return "nothing runs until somebody asks for it; the operator finds the cause in the server's log."
	case ConfigError:
		return "nothing runs until the file is corrected on the default branch."
	}
	if f.Rule == "closed" {
		return "nothing."
	}
	return "nothing runs until somebody asks for it."
}

// can is the decision's hint, else what fits the state.
func can(f Facts) string {
	if f.Hint != "" {
		return prose(f.Hint, f.Now)
	}
	switch f.State {
	case Running:
		return "comment `/pawl stop` to end it, or comment what to do differently."
	case Waiting:
		return "comment `/pawl resume` to try before that, or `/pawl stop` to end the run."
	case Done:
		return "review, or comment what is missing."
	case Failed:
		return "comment `/pawl retry` once the cause is gone."
	case ConfigError:
		return "correct the lines above; then comment `/pawl retry`."
	}
	switch f.Rule {
	case "closed":
		return ""
	case "cancelled", "usage_limit", "usage_limit_breaker":
		return "comment `/pawl resume` to go on."
	}
	return "comment what to do differently, or `/pawl retry`."
}
