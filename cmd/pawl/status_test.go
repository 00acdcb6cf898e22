package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestStatusSaysHowLongEverythingWaits(t *testing.T) {
	now := time.Date(2026, 3, 4, 8, 51, 0, 0, time.UTC)
	at := func(d time.Duration) *time.Time { t := now.Add(d); return &t }
	var out strings.Builder
	err := statusReport{
		now: now,
		Threads: []threadStatus{
			{Thread: "acme/widgets#7", State: "waiting", Rule: "cooldown", Run: 1, Attempts: 2, Until: at(5*time.Hour + 12*time.Minute)},
			{Thread: "acme/widgets#8", State: "done", Rule: "done", Run: 1, Attempts: 1},
		},
		Cooldowns: []cooldownStatus{
			{Backend: "codex", Repo: "acme/widgets", Class: "severe", Until: *at(5*time.Hour + 12*time.Minute)},
			{Backend: "claude", Repo: "acme/widgets", Class: "mild", Until: *at(20 * time.Second)},
		},
		Breakers: []breakerStatus{
			{Account: "main", Kind: "usage_limit", Consecutive: 3, Open: true, ResetsAt: at(51 * time.Hour)},
			{Account: "old", Kind: "usage_limit", Consecutive: 1, ResetsAt: at(-time.Hour)},
			{Account: "other", Kind: "auth", Consecutive: 1, Open: true},
		},
		Backends: []backendStatus{{Name: "codex", Kind: "codex", Account: "main"}},
	}.print(&out)
	if err != nil {
		t.Fatal(err)
	}
	want := `THREAD          STATE    RULE      RUN  ATTEMPTS  UNTIL
acme/widgets#7  waiting  cooldown  1    2         5h 12m left (until 14:03 UTC)
acme/widgets#8  done     done      1    1         
codex on acme/widgets: severe edit loop, 5h 12m left (until 14:03 UTC)
claude on acme/widgets: mild edit loop, under a minute left (until 08:51 UTC)
account main: 3 × usage_limit in a row, breaker open, 2d 3h left (until 2026-03-06 11:51 UTC)
account old: 1 × usage_limit in a row, breaker closed, was reset at 07:51 UTC
account other: 1 × auth in a row, breaker open, when it resets is unknown
backend codex (codex) on account main
`
	if d := cmp.Diff(want, out.String()); d != "" {
		t.Error(d)
	}
}
