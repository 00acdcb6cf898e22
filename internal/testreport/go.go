package testreport

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
)

var (
	goMark    = regexp.MustCompile(`(?:^ *|[^ ])--- (FAIL|PASS|SKIP): (\S+) \([0-9.]+s\)$`)
	goPackage = regexp.MustCompile(`^FAIL\t(\S*[^\s:])(?:\s+(?:[0-9.]+s|\[(build|setup) failed\]|\(cached\)).*)?$`)
	goHeader  = regexp.MustCompile(`^# ([\w./~@-]+)(?: \[[^\]]+\])?$`)
	goError   = regexp.MustCompile(`^(?:vet: )?\S+\.go:\d+(?::\d+)?: `)
	goDone    = regexp.MustCompile(`^(?:FAIL|ok  \t|\?   \t)`) // a package's result
	goCrash   = regexp.MustCompile(`^(?:panic|fatal error): `) // a test program's crash
	goRunning = regexp.MustCompile(`^\t\t(\S+) \([0-9.hms]+\)$`)
)

// goReader reads go test (also -v and -json), go build and go vet. A test's name is "package Test/sub", or "Test/sub"
// if the output ends before the package's line. A parent test that fails because of its subtests is listed, too.
type goReader struct {
	*tally // hasCounts means that the output names passed tests

	pending []*goTest // the current package's failed tests; the package's line follows them
	passing []string  // the current package's passed tests
	panics  *goTest   // a panic outside tests, or in the running tests
	open    *goTest   // the test that the next lines belong to
	depth   int       // the indentation of open
	whole   bool      // open also takes lines without indentation

	running string // with -v: the test that the next lines belong to
	printed blocks // with -v and -json: the output by test

	idle, busy bool // whether there are packages without tests, and packages with tests

	building string   // the package that the next errors belong to
	builds   blocks   // the errors by package
	failedIn []string // with -json: the packages with a failed test
}

type goTest struct {
	name string
	also []string // the tests that were running when the program ended
	text block
}

// maxPrinted limits the number of tests whose output is kept until they end.
const maxPrinted = 1000

func golang(r *ruled) []rule {
	g := &goReader{tally: &r.tally}
	r.finish = g.finish
	return []rule{{"", func(m []string) bool { return g.line(m[0]) }}}
}

func (g *goReader) line(s string) bool {
	if strings.HasPrefix(s, "{") {
		return g.event(s)
	}
	if strings.Contains(s, "--- ") {
		m := goMark.FindStringSubmatch(s)
		begins := g.seen || strings.HasPrefix(strings.TrimLeft(s, " "), "---")
		if m != nil && begins {
			g.mark(m[1], m[2], indent(s))
			return true
		}
	}
	if strings.HasPrefix(s, "=== ") {
		return g.verbose(s)
	}
	if goDone.MatchString(s) {
		return g.packageLine(s)
	}
	if g.build(s) {
		return true
	}
	if g.inside(s) {
		return true
	}
	if goCrash.MatchString(s) {
		g.panics = &goTest{name: "panic"}
		g.open, g.depth, g.whole = g.panics, -1, true
		g.panics.text.add(s)
		return g.seen
	}
	if g.running != "" {
		g.printed.add(maxPrinted, g.running, s)
		return indent(s) > 0
	}
	return false
}

// mark handles a line such as "--- FAIL: TestSum (0.00s)".
func (g *goReader) mark(what, name string, depth int) {
	g.seen, g.open = true, nil
	printed := g.printed.take(name)
	switch what {
	case "PASS":
		g.hasCounts = true
		g.passed++
		if len(g.passing) <= maxRan {
			g.passing = append(g.passing, name)
		}
	case "SKIP":
		g.skipped++
	case "FAIL":
		g.failed++
		if len(g.pending) < maxFailing {
			t := &goTest{name: name}
			g.pending = append(g.pending, t)
			g.open, g.depth, g.whole = t, depth, strings.HasPrefix(name, "Example")
			if printed != "" {
				t.text.add(printed)
			}
		}
	}
}

func (g *goReader) inside(s string) bool {
	t := g.open
	if t == nil {
		return false
	}
	if strings.HasPrefix(s, "panic: ") {
		g.whole = true
	}
	if g.outside(s) {
		g.open = nil
		return false
	}
	if t == g.panics {
		t.running(s)
	}
	if !t.text.add(s) {
		g.open = nil
	}
	return true
}

func (g *goReader) outside(s string) bool {
	if g.whole || strings.TrimSpace(s) == "" {
		return false
	}
	return indent(s) <= g.depth
}

func (t *goTest) running(s string) {
	if m := goRunning.FindStringSubmatch(s); m != nil {
		t.also = append(t.also, m[1])
	}
}

func (g *goReader) verbose(s string) bool {
	fields := strings.Fields(s)
	if len(fields) != 3 || !slices.Contains([]string{"RUN", "CONT", "NAME", "PAUSE"}, fields[1]) {
		return false
	}
	g.seen, g.hasCounts, g.open = true, true, nil
	g.running = fields[2]
	if fields[1] == "PAUSE" {
		g.running = ""
	}
	return true
}

func (g *goReader) packageLine(s string) bool {
	if s == "FAIL" {
		g.open, g.running = nil, ""
		return g.seen
	}
	if strings.HasPrefix(s, "FAIL") {
		m := goPackage.FindStringSubmatch(s)
		if m == nil {
			return false // Jest's line, such as "FAIL src/sum.test.js"
		}
		g.packageDone(m[1], m[2])
		g.busy = true
	} else {
		g.ranIn(strings.Fields(s + " -")[1] + " ")
		g.flush("")
		noTests := strings.HasPrefix(s, "?") || strings.HasSuffix(s, "[no tests to run]")
		if noTests {
			g.idle = true
		} else {
			g.busy, g.okay = true, true
		}
	}
	g.seen, g.open, g.running = true, nil, ""
	return true
}

func (g *goReader) packageDone(pkg, broke string) {
	if broke != "" {
		g.failed++
		g.add(pkg+" ["+broke+" failed]", g.builds.take(pkg))
		return
	}
	if len(g.pending) == 0 && g.panics == nil {
		g.failed++
		g.add(pkg+" [failed]", "The package failed without a failing test: "+
			"a test ended the program, or TestMain did.")
	}
	g.flush(pkg + " ")
}

func (g *goReader) flush(prefix string) {
	for _, t := range g.pending {
		g.add(prefix+t.name, t.text.text())
	}
	if g.panics != nil {
		g.flushPanic(prefix)
	}
	g.ranIn(prefix)
	g.pending, g.panics, g.open = nil, nil, nil
}

// flushPanic records the tests that a panic lists as running. If it lists none, it records the panic itself.
func (g *goReader) flushPanic(prefix string) {
	text := g.panics.text.text()
	for _, name := range g.panics.also {
		g.failed++
		message, _, _ := strings.Cut(text, "\n\ngoroutine ")
		g.add(prefix+name, message)
	}
	explained := len(g.pending) > 0 || len(g.panics.also) > 0
	if explained || prefix == "" {
		return
	}
	g.failed++
	g.add(prefix+"panic", text)
}

func (g *goReader) ranIn(prefix string) {
	for _, name := range g.passing {
		g.pass(prefix + name)
	}
	g.passing = nil
}

// build handles a package's errors: a line "# package", then lines with file and line number.
func (g *goReader) build(s string) bool {
	if strings.HasPrefix(s, "# ") {
		if m := goHeader.FindStringSubmatch(s); m != nil {
			g.building = m[1]
			return false // other programs print such lines, too; the next line decides
		}
	}
	if g.building == "" {
		return false
	}
	if strings.HasPrefix(s, "# [") {
		return true // go vet prints the package a second time, in brackets
	}
	continued := strings.HasPrefix(s, "\t") && g.builds.by[g.building] != nil
	if !continued && !goError.MatchString(s) {
		g.building = ""
		return false
	}
	g.seen = true
	g.builds.add(maxFailing, g.building, s)
	return true
}

// goEvent is a line of go test -json (go doc test2json) or go build -json. We do not use gotestsum's package testjson: it
// drops FailedBuild, counts unfinished tests as failed, keeps unlimited output, and stops at lines over 64 KiB.
type goEvent struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

func (g *goReader) event(s string) bool {
	var e goEvent
	err := json.Unmarshal([]byte(s), &e)
	if err != nil || e.Action == "" {
		return false
	}
	ofNoPackage := e.Package == "" && e.ImportPath == ""
	if ofNoPackage {
		return false
	}
	g.seen, g.hasCounts = true, true
	name := strings.TrimSpace(e.Package + " " + e.Test)
	switch e.Action {
	case "build-output":
		if !strings.HasPrefix(e.Output, "# ") {
			pkg, _, _ := strings.Cut(e.ImportPath, " ")
			g.builds.add(maxFailing, pkg, strings.TrimRight(e.Output, "\n"))
		}
	case "output":
		out := strings.TrimRight(e.Output, "\n")
		progress := strings.HasPrefix(out, "=== ") || goMark.MatchString(out)
		if !progress {
			g.printed.add(maxPrinted, name, out)
		}
	case "pass":
		if e.Test != "" {
			g.passed++
			g.pass(name)
		}
		g.printed.take(name)
	case "skip":
		if e.Test != "" {
			g.skipped++
		}
		g.printed.take(name)
	case "fail":
		g.failEvent(e, name)
	}
	return true
}

func (g *goReader) failEvent(e goEvent, name string) {
	text := g.printed.take(name)
	switch {
	case e.Test != "":
		g.failed++
		g.add(name, text)
		if len(g.failedIn) < maxPrinted && !slices.Contains(g.failedIn, e.Package) {
			g.failedIn = append(g.failedIn, e.Package)
		}
	case e.FailedBuild != "":
		g.packageDone(e.Package, "build")
	case !slices.Contains(g.failedIn, e.Package):
		g.failed++
		g.add(e.Package+" [failed]", text)
	}
}

func (g *goReader) finish() {
	g.flush("")
	for _, pkg := range g.builds.names {
		if text := g.builds.take(pkg); text != "" {
			g.failed++
			g.add(pkg+" [build failed]", text)
		}
	}
	if g.idle && !g.busy {
		g.hasCounts = true // no test passed
	}
}
