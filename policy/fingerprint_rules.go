package policy

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
