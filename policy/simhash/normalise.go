package simhash

// Normalise removes from text what changes between two equal attempts: UUIDs,
// cuid-like identifiers, time stamps, hashes of 8 to 64 hexadecimal digits and
// the numbers that start lines; white space becomes single spaces and ASCII
// letters lower-case.
//
// It does one removal after the other, as the definition of the fingerprint is written, and
// takes time linear in the text.
func Normalise(text string) string {
	text = dropRuns(text, func(rest string, _ int, _ byte) int { return uuidAt(rest) })
	text = dropRuns(text, func(rest string, n int, _ byte) int { return identifierAt(rest, n) })
	text = dropTimestamps(text)
	text = dropRuns(text, func(_ string, n int, shared byte) int { return hashAt(n, shared) })
	text = dropLineNumbers(text)
	return foldSpace(text)
}

// dropRuns removes what match finds at the starts of runs of word characters.
// match is given the text from that start on, the length of the run and the
// classes that its bytes share.
func dropRuns(text string, match func(rest string, n int, shared byte) int) string {
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		n, shared := run(text[i:])
		if n == 0 {
			kept = append(kept, text[i])
			i++
			continue
		}
		if drop := match(text[i:], n, shared); drop > 0 {
			i += drop
			continue
		}
		kept = append(kept, text[i:i+n]...)
		i += n
	}
	return string(kept)
}

// dropTimestamps is rule 3.
func dropTimestamps(text string) string {
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if n := timestampAt(text[i:]); n > 0 {
			i += n
			continue
		}
		kept = append(kept, text[i])
		i++
	}
	return string(kept)
}

// dropLineNumbers is rule 5. Its \s* crosses line ends, before the number and
// after it, and a line that starts right after a match is a line of its own.
func dropLineNumbers(text string) string {
	kept := make([]byte, 0, len(text))
	for i := 0; i < len(text); {
		if i == 0 || text[i-1] == '\n' {
			blank := leading(text[i:], isSpace)
			if n := numberAt(text[i+blank:]); n > 0 {
				i += blank + n
				i += leading(text[i:], isSpace)
				continue
			}
			// Every line that begins within this white space fails in the same
			// way; trying each would take quadratic time. So does the line that
			// begins at its end: the byte there is copied without asking again.
			blank = min(blank+1, len(text)-i)
			kept = append(kept, text[i:i+blank]...)
			i += blank
		}
		for i < len(text) && text[i-1] != '\n' {
			kept = append(kept, text[i])
			i++
		}
	}
	return string(kept)
}

// numberAt returns the length of \d+[\t|:] at the start of text, 0 for none.
func numberAt(text string) int {
	n := leading(text, isDigit)
	if n == 0 || n == len(text) {
		return 0
	}
	if end := text[n]; end != '\t' && end != '|' && end != ':' {
		return 0
	}
	return n + 1
}

// foldSpace makes each run of white space one space, trims spaces at both ends
// and makes ASCII letters lower-case.
func foldSpace(text string) string {
	kept := make([]byte, 0, len(text))
	for i := range len(text) {
		switch {
		case !is(text[i], isSpace):
			kept = append(kept, lower(text[i]))
		case len(kept) > 0 && kept[len(kept)-1] != ' ':
			kept = append(kept, ' ')
		}
	}
	if n := len(kept); n > 0 && kept[n-1] == ' ' {
		kept = kept[:n-1]
	}
	return string(kept)
}

// The first four rules of the fingerprint, each as a question about the start
// of a text: how many bytes does the rule remove here? The answer 0 is no.
//
// Rules 1, 2 and 4 are anchored by \b at both ends and hold word characters at
// both ends. They can therefore match only at the start of a maximal run of
// word characters, and only up to the end of one; the callers see to the start.

// uuidAt is rule 1 at the start of a run of word characters.
func uuidAt(text string) int {
	const size = 8 + 1 + 4 + 1 + 4 + 1 + 4 + 1 + 12
	if len(text) < size {
		return 0
	}
	at := 0
	for _, n := range [...]int{8, 4, 4, 4, 12} {
		if at > 0 {
			if text[at] != '-' {
				return 0
			}
			at++
		}
		if !all(text[at:at+n], isHex) {
			return 0
		}
		at += n
	}
	if at < len(text) && is(text[at], isWord) {
		return 0
	}
	return size
}

// identifierAt is rule 2 (cuid-like identifiers) for the run of n word
// characters at the start of text.
func identifierAt(text string, n int) int {
	if n < 2+20 || n > 2+30 || lower(text[0]) != 'c' {
		return 0
	}
	if second := lower(text[1]); second != 'l' && second != 'm' && second != '_' {
		return 0
	}
	if !all(text[2:n], isAlnum) {
		return 0
	}
	return n
}

// timestampAt is rule 3. It has no \b: it may match in the middle of a run.
func timestampAt(text string) int {
	const form = "0000-00-00T00:00:00"
	if len(text) < len(form) {
		return 0
	}
	for i := range len(form) {
		if form[i] == '0' && !is(text[i], isDigit) || form[i] != '0' && text[i] != form[i] {
			return 0
		}
	}
	n := len(form)
	for n < len(text) && (is(text[n], isDigit) || text[n] == '.' || text[n] == 'Z') {
		n++
	}
	return n
}

// hashAt is rule 4 for a run of n word characters that share the given classes.
func hashAt(n int, shared byte) int {
	if n < 8 || n > 64 || shared&isHex == 0 {
		return 0
	}
	return n
}

// all reports whether every byte of text is in one of the classes.
func all(text string, classes byte) bool {
	return leading(text, classes) == len(text)
}
