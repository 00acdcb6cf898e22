package limit

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/policy"
)

// Bounds of readings that make sense, all our choice. The longest window known is a month.
const (
	// mostWindows is far above what any provider reports for one account.
	mostWindows = 16
	mostUsed    = 10.0
	longest     = 32 * 24 * time.Hour
)

// A window has two headers with the same stem, or a share alone. Anthropic reports a fraction and Codex a percentage.
const (
	fractionHeader = "-Utilization"
	percentHeader  = "-Used-Percent"
)

// Windows reads the usage windows that the headers of an answer report, sorted by name. Headers that make no sense are
// left out. Requests and tokens per minute are no window.
func Windows(h http.Header, received time.Time) []policy.Window {
	var all []policy.Window
	for header := range h {
		stem, fraction := strings.CutSuffix(header, fractionHeader)
		unit := 1.0
		if !fraction {
			var percent bool
			stem, percent = strings.CutSuffix(header, percentHeader)
			if !percent {
				continue
			}
			unit = 100
		}
		w := policy.Window{SeenAt: received, Used: number(h.Get(header)) / unit}
		if h.Get(stem+"-Status") == "rejected" {
			w.Used = max(w.Used, 1)
		}
		w.ResetsAt = cmp.Or(
			unix(h.Get(stem+"-Reset-At")),
			unix(h.Get(stem+"-Reset")),
			after(received, number(h.Get(stem+"-Reset-After-Seconds"))),
		)
		w.Length = minutes(number(h.Get(stem + "-Window-Minutes")))
		w.Name = nameOf(stem, w.Length)
		all = append(all, w)
	}
	return sensible(all)
}

// CodexWindows reads the windows of `rate_limits` in an event of Codex: objects with used_percent.
func CodexWindows(limits gjson.Result, seen time.Time) []policy.Window {
	family := limits.Get("limit_name").String()
	var all []policy.Window
	limits.ForEach(func(key, v gjson.Result) bool {
		if !v.Get("used_percent").Exists() {
			return true
		}
		w := policy.Window{
			SeenAt:   seen,
			Used:     v.Get("used_percent").Float() / 100,
			ResetsAt: unix(v.Get("resets_at").String()),
			Length:   minutes(v.Get("window_minutes").Float()),
		}
		w.Name = nameOf(strings.Trim(family+"-"+key.String(), "-"), w.Length)
		all = append(all, w)
		return true
	})
	return sensible(all)
}

func minutes(n float64) time.Duration {
	if n <= 0 || n > longest.Minutes() {
		return 0
	}
	return time.Duration(n * float64(time.Minute))
}

var (
	// provider is what stands before a window's name in a header's stem.
	provider = regexp.MustCompile(`^(?:x-)?(?:codex|anthropic-ratelimit-unified)-?|^x-`)
	// rank is Codex's word for a window, which says less than its length.
	rank = regexp.MustCompile(`-?(?:primary|secondary)$`)
	// lengthForm is a window's length at the beginning of its name.
	lengthForm = regexp.MustCompile(`^([0-9]{1,3})([mhd])(?:[^a-z0-9]|$)`)
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)
)

// nameOf is a window's name by a header's stem: what the provider calls it, with the length instead of a rank.
func nameOf(stem string, length time.Duration) string {
	name := provider.ReplaceAllString(strings.ToLower(stem), "")
	if length > 0 {
		name = strings.Trim(rank.ReplaceAllString(name, "")+"-"+span(length), "-")
	}
	return name
}

// span is a length in its largest whole unit: 5h, 7d, 90m.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// sensible keeps the readings that can be true, one for each name, with their lengths.
func sensible(all []policy.Window) []policy.Window {
	all = slices.DeleteFunc(all, func(w policy.Window) bool { return !makesSense(w) })
	for i, w := range all {
		if w.Length == 0 {
			all[i].Length = lengthOf(w.Name)
		}
	}
	slices.SortFunc(all, func(a, b policy.Window) int {
		return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(b.Used, a.Used))
	})
	all = slices.CompactFunc(all, func(a, b policy.Window) bool { return a.Name == b.Name })
	if len(all) == 0 {
		return nil
	}
	return all[:min(len(all), mostWindows)]
}

func makesSense(w policy.Window) bool {
	if !nameForm.MatchString(w.Name) {
		return false
	}
	if !between(w.Used, 0, mostUsed) {
		return false
	}
	return !w.ResetsAt.After(w.SeenAt.Add(longest))
}

// lengthOf is the length that a window's name begins with; 0 if none.
func lengthOf(name string) time.Duration {
	m := lengthForm.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return time.Duration(n) * map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
}
