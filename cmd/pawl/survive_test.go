package main

import (
	"syscall"
	"testing"
	"time"

	"github.com/pawlbot/pawl/policy"
)

func TestKill9DuringAnAttemptIsAnInterruptionAndTheRunGoesOn(t *testing.T) {
	t.Parallel() // it waits for the dead server's lease to run out
	r := newProcessRig(t, nil)
	n := r.AtWork()
	killed := time.Now()
	r.Stop(syscall.SIGKILL)
	r.Touch("go")
	r.Start()
	r.WantSolved(n)
	a := r.State(n).Attempts
	if len(a) != 2 || a[0].Receipt.Outcome != policy.Interrupted || a[1].Receipt.Outcome != policy.Edited {
		t.Errorf("attempts %+v, want one interrupted and one that edited", a)
	} else if late := a[1].At.Sub(killed); late > goOnWithin {
		t.Errorf("the second attempt began %s after the kill, want %s", late, goOnWithin)
	}
}
