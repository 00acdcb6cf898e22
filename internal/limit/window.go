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

// Bounds of plausible readings. Our choice. The longest window known is a month.
const (
	// mostWindows is far above what any provider reports for one account.
	mostWindows = 16
	mostUsed    = 10.0
	longest     = 32 * 24 * time.Hour
	// latestReset is the longest time to a window's reset, in window lengths: one, and one for differing clocks.
	latestReset = 2
)

// overage begins the names of Anthropic's credits for calls beyond the windows. A call that still fits the windows needs
// none, so used-up credits block nothing.
const overage = "overage"

// A window's share and reset headers have one stem; a reset may be missing. Anthropic reports a fraction
// and Codex a percentage.
const (
	fractionHeader = "-Utilization"
	percentHeader  = "-Used-Percent"
)

// Windows reads the usage windows that the headers of an answer report, sorted by name. It omits implausible headers.
// Limits per minute are not windows.
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

// CodexWindows reads the windows of `rate_limits` in an event of Codex or of its provider: objects with used_percent.
// Versions name the reset differently.
func CodexWindows(limits gjson.Result, seen time.Time) []policy.Window {
	family := limits.Get("limit_name").String()
	var all []policy.Window
	limits.ForEach(func(key, v gjson.Result) bool {
		percent := v.Get("used_percent")
		if percent.Type != gjson.Number {
			return true
		}
		w := policy.Window{
			SeenAt: seen,
			Used:   percent.Float() / 100,
			Length: minutes(v.Get("window_minutes").Float()),
		}
		w.ResetsAt = cmp.Or(
			unix(v.Get("resets_at").String()),
			unix(v.Get("reset_at").String()),
			after(seen, number(v.Get("resets_in_seconds").String())),
			after(seen, number(v.Get("reset_after_seconds").String())),
		)
		w.Name = nameOf(strings.Trim(family+"-"+key.String(), "-"), w.Length)
		all = append(all, w)
		return true
	})
	return sensible(all)
}

// ClaudeWindow reads the window of Claude Code's rate_limit_event. Only a warning has a share; else known is false.
func ClaudeWindow(info gjson.Result) (w policy.Window, known bool) {
	share := info.Get("utilization")
	w = policy.Window{
		Name:     inFigures(info.Get("rateLimitType").Str),
		Used:     share.Float(),
		ResetsAt: unix(info.Get("resetsAt").String()),
	}
	return w, share.Type == gjson.Number
}

// Newer merges later readings into old ones. A later reading replaces an older one for its window.
func Newer(old, later []policy.Window) []policy.Window {
	replaced := func(w policy.Window) bool {
		return slices.ContainsFunc(later, func(l policy.Window) bool { return l.Name == w.Name })
	}
	kept := slices.DeleteFunc(slices.Clone(old), replaced)
	all := slices.Concat(later, kept)
	return all[:min(len(all), mostWindows)]
}

// Seen sets the time of readings and omits implausible ones.
func Seen(all []policy.Window, at time.Time) []policy.Window {
	all = slices.Clone(all)
	for i := range all {
		all[i].SeenAt = at
	}
	return sensible(all)
}

// minutes returns a window's length; 0 if implausible. Some versions of Codex report a minute less, such as 299.
func minutes(n float64) time.Duration {
	if n <= 0 || n > longest.Minutes() {
		return 0
	}
	exact := time.Duration(n * float64(time.Minute))
	if whole := exact.Round(time.Hour); (whole - exact).Abs() <= time.Minute {
		return whole
	}
	return exact
}

var (
	// provider matches the provider's prefix of a header's stem.
	provider = regexp.MustCompile(`^(?:x-)?(?:codex|anthropic-ratelimit-unified)-?|^x-`)
	// rank matches Codex's words for a window. The window's length says more.
	rank = regexp.MustCompile(`-?(?:primary|secondary)$`)
	// lengthForm matches a window's length at the beginning of its name.
	lengthForm = regexp.MustCompile(`^([0-9]{1,3})([mhd])(?:[^a-z0-9]|$)`)
	nameForm   = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,39}$`)
)

// spelled matches a length in words at the beginning of a name, as in five_hour or seven_day_opus.
var spelled = regexp.MustCompile(`^([a-z]+)_(minute|hour|day)(_|$)`)

var figures = []string{"zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"}

// inFigures writes a spelled length as headers do: 5h for five_hour.
func inFigures(name string) string {
	m := spelled.FindStringSubmatch(name)
	if m == nil {
		return name
	}
	n := slices.Index(figures, m[1])
	if n < 1 {
		return name
	}
	return fmt.Sprintf("%d%c%s", n, m[2][0], m[3]) + name[len(m[0]):]
}

// nameOf derives a window's name from a header's stem: the provider's name, with the length instead of a rank.
func nameOf(stem string, length time.Duration) string {
	name := provider.ReplaceAllString(strings.ToLower(stem), "")
	if length > 0 {
		name = strings.Trim(rank.ReplaceAllString(name, "")+"-"+span(length), "-")
	}
	return name
}

// span formats a length in its largest whole unit: 5h, 7d, 90m.
func span(d time.Duration) string {
	switch {
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	case d%time.Hour == 0:
		return fmt.Sprintf("%dh", d/time.Hour)
	}
	return fmt.Sprintf("%dm", d/time.Minute)
}

// sensible keeps plausible readings, one for each name, and fills in their lengths.
func sensible(all []policy.Window) []policy.Window {
	for i, w := range all {
		if w.Length == 0 {
			all[i].Length = lengthOf(w.Name)
		}
	}
	all = slices.DeleteFunc(all, func(w policy.Window) bool { return !makesSense(w) })
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
	if strings.HasPrefix(w.Name, overage) {
		return false
	}
	far := longest
	if w.Length > 0 {
		far = min(far, latestReset*w.Length)
	}
	return !w.ResetsAt.After(w.SeenAt.Add(far))
}

// lengthOf parses the length at the beginning of a window's name; 0 for none.
func lengthOf(name string) time.Duration {
	m := lengthForm.FindStringSubmatch(name)
	if m == nil {
		return 0
	}
	n, _ := strconv.Atoi(m[1])
	return time.Duration(n) * map[string]time.Duration{"m": time.Minute, "h": time.Hour, "d": 24 * time.Hour}[m[2]]
}
