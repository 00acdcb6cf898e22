package agent

import (
	"io"
	"strings"
	"testing"
	"time"
)

func TestOverlongLinesOfStandardErrorAreLookedAtInPart(t *testing.T) {
	var told []Try
	w := &tryReader{onTry: func(n Try) { told = append(told, n) }, read: func(lines string) (Try, bool) {
		return Try{Wait: time.Hour}, strings.HasSuffix(lines, "\nRetrying after an hour")
	}}
	for range 100 {
		io.WriteString(w, strings.Repeat("x", 1<<20))
	}
	io.WriteString(w, "\nRetrying after an hour\n")
	if len(told) != 1 || told[0].Wait != time.Hour || max(cap(w.line), cap(w.last)) > 4*maxTryLine {
		t.Errorf("%+v; %d and %d bytes held", told, cap(w.line), cap(w.last))
	}
}
