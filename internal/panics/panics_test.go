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

func TestTaskRestartsAfterAPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, runs, reports := time.Now(), 0, 0
		Repeat(t.Context(), func() {
			if runs++; runs < 4 {
				panic(runs)
			}
		}, func(*Error) { reports++ })
		if took := time.Since(began); runs != 4 || reports != 3 || took != 3*pause {
			t.Errorf("%d runs, %d reports, in %s", runs, reports, took)
		}
		ctx, cancel := context.WithCancel(t.Context())
		Repeat(ctx, func() { cancel(); panic("at the end") }, func(*Error) { reports++ })
		if reports != 4 {
			t.Error("a task restarts while the server stops")
		}
	})
}
