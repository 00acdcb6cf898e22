package policy

import "slices"

// Heard reports whether a repository that listens to the given triggers hears
// feedback of that source; none given means all. The words are those of the
// repository's configuration: command, mention, label, review, comment,
// description, check_run. Buttons are always heard.
func Heard(source Source, c Command, triggers []string) bool {
	word := string(source)
	switch {
	case source == FromButton:
		return true
	case c.Mention:
		word = "mention"
	case c.Name != "" && source != FromLabel:
		word = "command"
	case source == FromReviewComment:
		word = "review"
	}
	return len(triggers) == 0 || slices.Contains(triggers, word)
}
