package policy

import (
	"encoding/json"
	"strings"
)

// build takes the errors of a package that does not build: a line "# package", then
// lines that begin with a file and a line number.
func (g *goReader) build(s string) bool {
	if strings.HasPrefix(s, "# ") {
		if m := goHeader.FindStringSubmatch(s); m != nil {
			g.building = m[1]
			return false // until an error follows, it may be anybody's remark
		}
		if strings.HasPrefix(s, "# [") && g.building != "" {
			return true // go vet names the package a second time
		}
	}
	if g.building == "" {
		return false
	}
	known := g.builds[g.building] != nil
	if !goError.MatchString(s) && (!known || !strings.HasPrefix(s, "\t")) {
		g.building = ""
		return false
	}
	g.seen = true
	g.buildError(g.building, s)
	return true
}

func (g *goReader) buildError(pkg, s string) {
	b := g.builds[pkg]
	if b == nil {
		if len(g.builds) >= maxFailing {
			return
		}
		if g.builds == nil {
			g.builds = map[string]*block{}
		}
		b = &block{}
		g.builds[pkg] = b
		g.order = append(g.order, pkg)
	}
	b.add(s)
}

// goEvent is one line of go test -json (go doc test2json) or of go build -json.
type goEvent struct {
	Action, Package, Test, Output, ImportPath, FailedBuild string
}

// event reads a line of go test -json.
func (g *goReader) event(s string) bool {
	var e goEvent
	if json.Unmarshal([]byte(s), &e) != nil || e.Action == "" || e.Package == "" && e.ImportPath == "" {
		return false
	}
	g.seen, g.each = true, true
	name := strings.TrimSpace(e.Package + " " + e.Test)
	switch e.Action {
	case "build-output":
		if !strings.HasPrefix(e.Output, "# ") {
			g.buildError(firstWord(e.ImportPath), strings.TrimRight(e.Output, "\n"))
		}
	case "output":
		if out := strings.TrimRight(e.Output, "\n"); !strings.HasPrefix(out, "=== ") && goMark.FindString(out) == "" {
			g.print(name, out)
		}
	case "pass", "skip":
		if e.Test != "" && e.Action == "pass" {
			g.passed++
		} else if e.Test != "" {
			g.skipped++
		}
		delete(g.printed, name)
	case "fail":
		g.failEvent(e, name)
	}
	return true
}

func (g *goReader) failEvent(e goEvent, name string) {
	text := ""
	if b := g.printed[name]; b != nil {
		text = b.text()
		delete(g.printed, name)
	}
	switch {
	case e.Test != "":
		g.failed++
		g.add(name, text)
		if g.failedIn == nil {
			g.failedIn = map[string]bool{}
		}
		g.failedIn[e.Package] = true
	case e.FailedBuild != "":
		g.packageDone(e.Package, "build")
	case !g.failedIn[e.Package]:
		g.failed++
		g.add(e.Package+" [failed]", text)
	}
}

func firstWord(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}
