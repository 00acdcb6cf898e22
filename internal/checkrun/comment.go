package checkrun

import "fmt"

// commentRows is how many attempts a comment shows; the check run shows more.
const commentRows = 5

// StatusMarker is the first line of a thread's status comment, by which it is
// found again.
func StatusMarker(thread string) string { return "<!-- pawl:status " + threadName(thread) + " -->" }

// Comment renders the one status comment of a thread.
func Comment(f Facts) string {
	p := newPage(f.Now)
	p.sentence(StatusMarker(f.Thread))
	addStatus(p, f)
	p.fold("Attempts", table(f, commentRows))
	if f.Request != "" || f.Title != "" {
		p.fold("What was asked", asked(f))
	}
	p.fold("Edit loop and stagnation", verdictLines(f))
	return p.fit()
}

// Status renders the answer to /pawl status. Like every answer it carries no
// marker: whoever posts it adds the one by which it is found again.
func Status(f Facts) string {
	p := newPage(f.Now)
	addStatus(p, f)
	p.sentence(verdictLines(f))
	p.sentence(table(f, commentRows))
	if fired := rungs(f.run()); fired != "" {
		p.sentence("Recoveries:\n\n" + fired)
	}
	p.sentence("As of " + stamp(f.Now) + ".")
	return p.fit()
}

// addStatus adds where the thread stands, why, and what comes next.
func addStatus(p *page, f Facts) {
	p.sentence("**" + prose(headline(f), f.Now) + "**")
	p.list(evidence(f)...)
	p.list(outlook(f)...)
}

// Why renders the answer to /pawl why: what the last events came to, newest
// first, and the decision that holds now.
func Why(f Facts) string {
	p := newPage(f.Now)
	if len(f.Feedback) == 0 {
		p.sentence("Nothing that happened on this thread was judged yet.")
	}
	for i := len(f.Feedback) - 1; i >= max(0, len(f.Feedback)-whyRows); i-- {
		p.sentence(judged(f.Feedback[i], f))
	}
	if more := len(f.Feedback) - whyRows; more > 0 {
		p.sentence("…and " + plural(more, "earlier event"))
	}
	p.sentence("Now: **" + prose(headline(f), f.Now) + "**")
	p.list(append(p.reasons(f.Reasons, 10), rule(f))...)
	p.list(outlook(f)...)
	p.list(links(f)...)
	return p.fit()
}

// whyRows is how many events an answer explains.
const whyRows = 10

func judged(e Feedback, f Facts) string {
	what := "**Not acted on**"
	if e.Accepted {
		what = "**Acted on**"
	}
	s := fmt.Sprintf("%s: %s by %s at %s, because %s.", what, words(e.Source, f.Now), code(e.By), Instant(f.Now, e.When), because(e, f))
	if e.Excerpt != "" {
		s += "\n\n" + fence(e.Excerpt, 500)
	}
	return s
}

func because(e Feedback, f Facts) string {
	if s := prose(e.Reason, f.Now); s != "" {
		return s
	}
	return "no reason was kept"
}

func rule(f Facts) string {
	if f.Rule == "" {
		return ""
	}
	return "rule: " + code(f.Rule)
}
