package testreport

import (
	"encoding/xml"
	"io"
	"regexp"
	"strings"
)

// Limits for hostile XML. encoding/xml expands only five entities and includes no other file, so its output is not larger
// than its input.
const (
	maxXMLDepth  = 64
	maxXMLErrors = 100 // the number of errors after which reading stops
)

// junitStart matches the first line of a report. The line has no indentation, unlike most XML that a test prints.
var junitStart = regexp.MustCompile(`^(?:<\?xml [^>]*>\s*)?<testsuites?[ >]`)

// junitXML extracts JUnit XML from an output line by line.
type junitXML struct {
	text   strings.Builder
	closer string // the open report's end tag; empty if no report is open
}

// cut takes the report's part of a line and returns the rest. own is false if the whole line belongs to the report.
func (x *junitXML) cut(line string) (rest string, own bool) {
	if x.closer == "" {
		start := junitStart.FindString(line)
		if start == "" {
			return line, true
		}
		x.closer = "</testsuite>"
		if strings.Contains(start, "<testsuites") {
			x.closer = "</testsuites>"
		}
	}
	inside, rest, closed := strings.Cut(line, x.closer)
	if closed {
		inside, x.closer = inside+x.closer, ""
	}
	if room := maxXML - x.text.Len() - 1; room > 0 {
		x.text.WriteString(inside[:min(len(inside), room)])
		x.text.WriteByte('\n')
	}
	return rest, rest != ""
}

// junitReader reads the JUnit XML of pytest, Surefire, Gradle, jest-junit, Vitest, node:test, PHPUnit, Playwright,
// bun, GoogleTest and CTest. A test's name is "classname.name", or "classname > name" if the class is a file or a sentence.
type junitReader struct {
	tally

	suites []string
	inCase bool
	name   string // the test case's name
	state  string // failure, error or skipped; empty for a passed test
	text   *block // the text of the open failure, error or skipped element
	texts  string // the first such text of the test case
	depth  int
}

// readJUnit reads reports token by token, so it can read incomplete reports. We do not use joshdk/go-junit 1.0.0: it
// refuses incomplete reports, other character sets and a bare "&". It also copies texts for each enclosing element (295
// MB for 500 kB in 300 elements).
func readJUnit(s string) Report {
	var j junitReader
	for range maxXMLErrors {
		d := xml.NewDecoder(strings.NewReader(s))
		d.Strict = false
		d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
		err := j.tokens(d)
		if err == io.EOF {
			break
		}
		j.endCase()
		j.depth, j.suites = 0, nil
		// Continue at the next test case after the error.
		s = s[min(len(s), int(d.InputOffset())):]
		next := strings.Index(s, "<testcase")
		if next < 0 {
			break
		}
		s = s[next:]
	}
	j.endCase()
	j.runner, j.hasCounts, j.seen = "junit", true, j.tests() > 0
	return j.report()
}

func (j *junitReader) tokens(d *xml.Decoder) error {
	for {
		t, err := d.RawToken()
		if err != nil {
			return err
		}
		switch t := t.(type) {
		case xml.StartElement:
			j.depth++
			if j.depth <= maxXMLDepth {
				j.startElement(t)
			}
		case xml.EndElement:
			if j.depth <= maxXMLDepth {
				j.endElement(t.Name.Local)
			}
			j.depth = max(0, j.depth-1)
		case xml.CharData:
			j.characters(string(t))
		}
	}
}

func (j *junitReader) characters(s string) {
	if j.text == nil || j.text.lines >= maxBlockLines {
		return
	}
	j.text.add(strings.Trim(s, "\n"))
}

func (j *junitReader) startElement(e xml.StartElement) {
	switch e.Name.Local {
	case "testsuite":
		j.suites = append(j.suites, attribute(e, "name"))
	case "testcase":
		j.endCase()
		j.inCase, j.name, j.state, j.texts = true, j.caseName(attribute(e, "classname"), attribute(e, "name")), "", ""
	case "failure", "error", "skipped":
		if !j.inCase || j.state == "skipped" {
			return
		}
		if j.state == "" || e.Name.Local == "skipped" {
			j.state = e.Name.Local
		}
		j.text = &block{}
		j.text.add(attribute(e, "message"))
	}
}

func (j *junitReader) caseName(class, name string) string {
	noClass := class == "" || class == "test"
	switch {
	case noClass:
		// node:test names suites only in the enclosing elements.
		return strings.Join(append(j.suites[:len(j.suites):len(j.suites)], name), " > ")
	case class == name:
		return name
	case strings.HasPrefix(name, class+" "):
		return name
	case strings.ContainsAny(class, " /"):
		return class + " > " + name
	}
	return class + "." + name
}

func (j *junitReader) endElement(element string) {
	switch element {
	case "testsuite":
		j.suites = j.suites[:max(0, len(j.suites)-1)]
	case "testcase":
		j.endCase()
	case "failure", "error", "skipped":
		j.endText()
	}
}

// endText ends a failure, error or skipped element. A test case keeps its first text.
func (j *junitReader) endText() {
	if j.text != nil && j.texts == "" {
		j.texts = j.text.text()
	}
	j.text = nil
}

func (j *junitReader) endCase() {
	if !j.inCase {
		return
	}
	j.endText()
	switch j.state {
	case "skipped":
		j.skipped++
	case "failure", "error":
		j.failed++
		j.add(j.name, withoutRepetition(j.texts))
	default:
		j.passed++
		j.pass(j.name)
	}
	j.inCase = false
}

func withoutRepetition(s string) string {
	first, rest, _ := strings.Cut(s, "\n")
	if first != "" && strings.Contains(rest, first) {
		return dedent(rest)
	}
	return s
}

func attribute(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}
