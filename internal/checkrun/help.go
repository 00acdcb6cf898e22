package checkrun

import "time"

// Help renders the answer to a command that does not exist. Slug is the App's
// name at GitHub, word what stood after /pawl.
func Help(slug, word string) string {
	p := newPage(time.Time{})
	if line(word, 40) == "" {
		p.sentence("`/pawl` needs a command.")
	} else {
		p.sentence(code("/pawl "+line(word, 40)) + " is not a command; nothing was done.")
	}
	p.list(
		"`/pawl solve [text]` works on this thread, with the text as an extra instruction",
		"`/pawl retry` starts one more attempt",
		"`/pawl stop` ends the run and a running attempt",
		"`/pawl resume` goes on now instead of waiting",
		"`/pawl escalate` starts one attempt with more effort",
		"`/pawl use BACKEND` takes that backend from now on",
		"`/pawl status` says where things stand",
		"`/pawl why` says why the last events were or were not acted on",
	)
	if name := label(slug); name != "" {
		p.sentence(code("@"+name) + " at the start of a line means solve.")
	}
	p.sentence("A command is the first thing on its line, outside quotes and code, by somebody who may write here.")
	return p.fit()
}
