package policy

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
