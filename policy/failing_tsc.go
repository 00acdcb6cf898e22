package policy

import (
	"regexp"
	"strings"
)

// tscError is "a.ts(1,7): error TS2322: …" or, for people, "a.ts:1:7 - error TS2322: …".
var tscError = regexp.MustCompile(`^(\S.*?)(?:\(\d+,\d+\): |:\d+:\d+ - )error (TS\d+): (.+)$`)

// tscReader reads the errors of the TypeScript compiler. Those of one number in one
// file are one failure, called "file TS2322": the lines move.
type tscReader struct{ failures }

func (t *tscReader) line(s string) bool {
	if !strings.Contains(s, "error TS") {
		return false
	}
	m := tscError.FindStringSubmatch(s)
	if m == nil {
		return false
	}
	t.add(m[1]+" "+m[2], m[3])
	return true
}

func (t *tscReader) report() TestReport {
	if len(t.list) == 0 {
		return TestReport{}
	}
	return t.counted("tsc", NotTold, len(t.list), NotTold)
}
