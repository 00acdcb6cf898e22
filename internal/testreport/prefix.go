package testreport

import (
	"regexp"
	"slices"
	"strings"
)

// lanes separate merged outputs. Workspace tools, container tools and logs merge outputs, and begin each line with a label:
// "api:test: ", "web-1  | ", "[INFO] ", "2026-08-12T10:00:00Z ". A line that a reader accepts unchanged has no label. A
// repeated label counts only if its lines are close together; see lane.real.
type lanes struct {
	by      map[string]*lane
	ordinal []*lane // lanes with a reader in order of appearance
	loose   int     // lines without a label
}

type labelled struct {
	label string // empty for none
	name  string // the prefix for test names; empty for times and levels
	rest  string // the line after the label
}

const (
	timeLabel  = "time"
	levelLabel = "level"
)

// plain reports whether the label is a time or a level. Such a label counts even if it occurs only once.
func (l labelled) plain() bool { return slices.Contains([]string{timeLabel, levelLabel}, l.label) }

type lane struct {
	labelled
	lines       int
	first, last int      // the number of unlabelled lines before its first and its last line
	waiting     []string // its lines until it has a reader
	reader      *Reader
}

// Limits of labels. A package without tests prints two lines, so two lines are enough for a label. The other limits
// restrict the memory used.
const (
	minLane      = 2
	maxLabel     = 120 // bytes
	maxLabels    = 500
	maxLanes     = 64
	maxWaiting   = 2000 // bytes per line
	maxLaneDepth = 5    // labels per line, such as job, step, time, container, package
)

// real reports whether the label is real: the unlabelled lines between its lines do not outnumber them. A level such as
// [INFO] is always real, because Maven prints test output without levels.
func (l *lane) real() bool { return l.label == levelLabel || l.last-l.first <= l.lines }

func (a *lanes) known(line labelled) bool {
	if line.plain() {
		return true
	}
	l := a.by[line.label]
	return l != nil && l.reader != nil
}

func (a *lanes) add(line labelled, depth int) {
	if line.label == "" {
		if strings.TrimSpace(line.rest) != "" {
			a.loose++
		}
		return
	}
	label, rest := line.label, line.rest
	l := a.by[label]
	if l == nil {
		a.forget()
		if a.by == nil {
			a.by = map[string]*lane{}
		}
		l = &lane{labelled: line, first: a.loose}
		a.by[label] = l
	}
	l.lines, l.last = l.lines+1, a.loose
	if l.reader != nil {
		l.reader.read(rest)
		return
	}
	if l.lines <= minLane {
		l.waiting = append(l.waiting, rest[:min(len(rest), maxWaiting)])
	}
	certain := l.lines >= minLane || line.plain()
	if !certain || len(a.ordinal) >= maxLanes {
		return
	}
	l.reader = NewReader()
	l.reader.depth = depth + 1
	a.ordinal = append(a.ordinal, l)
	for _, waited := range l.waiting {
		l.reader.read(waited)
	}
	l.waiting = nil
}

// forget drops the lanes without a reader if there are maxLabels lanes.
func (a *lanes) forget() {
	if len(a.by) < maxLabels {
		return
	}
	for label, l := range a.by {
		if l.reader == nil {
			delete(a.by, label)
		}
	}
}

// reports returns the reports of real lanes with the label before test names.
func (a *lanes) reports() (all []Report) {
	for _, l := range a.ordinal {
		if !l.real() {
			continue
		}
		r := l.reader.Report()
		if r.Runner == "" {
			continue
		}
		if l.name != "" {
			r = r.named(l.name + " ")
		}
		all = append(all, r)
	}
	return all
}

func (t Report) named(label string) Report {
	f := failures{}
	for _, one := range t.Failures {
		f.add(label+one.Name, one.Text)
	}
	for _, name := range t.Ran {
		f.pass(label + name)
	}
	t.Failures, t.Ran = f.list, f.ran
	return t
}

// Forms of labels. The first space after a label belongs to the label; more spaces belong to the line.
var (
	// timeStamp matches a time or a position: "12:00:01 ", "[1/4] ", "#12 3.456 ".
	timeStamp = regexp.MustCompile(`^(?:(?:[\[(]\d+(?:[-:.,/T+]\d+)+(?:Z|s)?[\])]|\d+(?:[-:.T+]\d+)+(?:,\d+)?(?:Z|s)?|\d+/\d+/\d+|\d\d[OE]\+?|#\d+|\[ *\d+%\]|\+\d\d:?\d\d|UTC)(?:[ \t]|$))+`)
	bracket   = regexp.MustCompile(`^[\[(<]([^\[\](){}<>]{1,60})[\])>]:?(?:[ \t]|$)`)
	bar       = regexp.MustCompile(`^([^\s|│┃][^|│┃]{0,60}?) *[|│┃](?: |$)`)
	tab       = regexp.MustCompile(`^([^\s][^\t]{0,79})\t`)
	colon     = regexp.MustCompile(`^([^\s:]+(?::[^\s:]+)*(?: [^\s:]+(?::[^\s:]+)*){0,4}):(?: |$)`)
	level     = regexp.MustCompile(`(?i)^(?:trace|debug|info|notice|warn|warning|error|fatal) *$`)
)

func label(line string) labelled {
	head := line[:min(len(line), maxLabel)]
	if m := timeStamp.FindString(head); m != "" {
		return labelled{label: timeLabel, rest: line[len(m):]}
	}
	all := labelled{rest: line}
	for _, form := range []*regexp.Regexp{bracket, bar, tab, colon} {
		m := form.FindStringSubmatch(head)
		if m == nil {
			continue
		}
		rest := line[len(m[0]):]
		if all.label == "" || len(rest) > len(all.rest) {
			all = labelled{label: strings.TrimSpace(m[0]), name: strings.TrimSpace(m[1]), rest: rest}
		}
	}
	if level.MatchString(all.name) {
		return labelled{label: levelLabel, rest: all.rest}
	}
	return all
}
