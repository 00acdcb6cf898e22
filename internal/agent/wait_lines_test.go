package agent

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestOverlongStderrLinesAreReadInPart(t *testing.T) {
	var reported []Try
	w := &tryReader{onTry: func(n Try) { reported = append(reported, n) }, read: func(lines string) (Try, bool) {
		return Try{Wait: time.Hour}, strings.HasSuffix(lines, "\nRetrying after an hour")
	}}
	for range 100 {
		io.WriteString(w, strings.Repeat("x", 1<<20))
	}
	io.WriteString(w, "\nRetrying after an hour\n")
	if len(reported) != 1 || reported[0].Wait != time.Hour || max(cap(w.line), cap(w.last)) > 4*maxTryLine {
		t.Errorf("%+v; %d and %d bytes stored", reported, cap(w.line), cap(w.last))
	}
}
