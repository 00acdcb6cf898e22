package panics

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPanicBecomesAnErrorWithItsStack(t *testing.T) {
	err := Try(func() error { panic("index out of range") })
	if err == nil || !strings.HasSuffix(err.Error(), "index out of range") || !strings.Contains(Stack(err), "panics_test.go") {
		t.Errorf("%v with the stack %q", err, Stack(err))
	}
	if err := Try(func() error { return context.Canceled }); err != context.Canceled || Stack(err) != "" {
		t.Error(err)
	}
}

func TestTaskBeginsAgainAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, runs, told := time.Now(), 0, 0
		Repeat(t.Context(), func() {
			if runs++; runs < 4 {
				panic(runs)
			}
		}, func(*Error) { told++ })
		if took := time.Since(began); runs != 4 || told != 3 || took != 3*pause {
			t.Errorf("%d runs, told %d times, in %s", runs, told, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		Repeat(ctx, func() { cancel(); panic("at the end") }, func(*Error) { told++ })
		if told != 4 {
			t.Error("a task begins again while the server stops")
		}
	})
}
