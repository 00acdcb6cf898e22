package forge

import (
	"strings"

	"github.com/pawlbot/pawl/internal/text"
)

// maxText is the length in bytes at which every text is cut. GitHub refuses bodies over 65,536
// characters and summaries over 65,535 bytes; what internal/checkrun renders is never longer.
const maxText = 60_000

// more ends a text of which only the beginning is left.
const more = "…"

// clip cuts a text to at most limit bytes, between two runes, and shows that. Bytes
// that are not UTF-8 become U+FFFD and NUL goes, as GitHub takes neither.
func clip(body string, limit int) string {
	body = strings.ToValidUTF8(strings.ReplaceAll(body, "\x00", ""), "\uFFFD")
	if len(body) <= limit {
		return body
	}
	return text.Head(body, limit-len(more)) + more
}

// clipLine makes one line of at most limit runes, for titles and labels.
func clipLine(s string, limit int) string {
	return text.Short(strings.Join(strings.Fields(clip(s, maxText)), " "), limit)
}

// withMarker clips a body so that the marker by which it is found again stays
// in it.
func withMarker(body, marker string) string {
	if clipped := clip(body, maxText); strings.Contains(clipped, marker) {
		return clipped
	}
	return clip(body, maxText-len(marker)-2) + "\n\n" + marker
}
