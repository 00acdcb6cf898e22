package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// An attempt's final report replaces a damaged row only if the report shows the account's current state.
func damagedStateIsReadAndReplaced(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	l := must(s.Acquire(t.Context(), thread.ID{Owner: "octo", Name: "cat", Number: 1}, "a"))(t)
	for _, state := range []string{"", "x{", "null", "[]", `"a"`, `{"consecutive": "x"}`, `{"consecutive": -1}`, `{"claim": 7}`, `{} {}`, "\x01"} {
		for ending, kept := range map[policy.Ending]bool{policy.Completed: false, policy.UsageLimit: false, policy.Auth: false, policy.Crashed: true} {
			spoil(t, s, "INSERT INTO breakers VALUES ('main', $1), ('other', '{\"kind\":\"auth\",\"consecutive\":2}')", state)
			breakers := must(s.Breakers(t.Context()))(t)
			if !strings.Contains(breakers["main"].Damage, "pawl close-breaker") || breakers["other"].Consecutive != 2 {
				t.Errorf("%q is read as %+v", state, breakers)
			}
			check(t, s.AppendLeased(t.Context(), l, thread.Batch{Account: "main", Breaker: func(b policy.Breaker) policy.Breaker {
				return b.After(ending, time.Time{}, c.Now(), c.Now())
			}}))
			if got := must(s.Breakers(t.Context()))(t)["main"].Damage != ""; got != kept {
				t.Errorf("%q after %s: damaged is %t, want %t", state, ending, got, kept)
			}
			spoil(t, s, "DELETE FROM breakers")
		}
	}
}

// A new loop does not end a damaged cooldown; a user's command does.
func damagedCooldownLastsUntilACommand(t *testing.T, dsn string) {
	s, _, c := open(t, dsn)
	l := must(s.Acquire(t.Context(), thread.ID{Owner: "octo", Name: "cat", Number: 1}, "a"))(t)
	for _, state := range []string{"", "x{", "null", "[]", `{"until": "soon"}`, `{"class": "odd"}`, `{"severe": [3]}`} {
		spoil(t, s, "INSERT INTO cooldowns VALUES ('octo/cat', 'codex', '', '', 0, 0, $1, ''), ('octo/dog', 'codex', '', '', 0, 1, '{\"class\":\"runaway\"}', '')", state)
		loop := thread.Cooldown{Backend: "codex", Cooldown: policy.Cooldown{Class: policy.Mild, At: c.Now(), Until: c.Now().Add(time.Hour)}}
		check(t, s.AppendLeased(t.Context(), l, thread.Batch{Cooldown: &loop}))
		all := must(s.Cooldowns(t.Context(), ""))(t)
		here, other := all["octo/cat"], all["octo/dog"]
		if len(here) != 1 || len(other) != 1 {
			t.Fatalf("%q is read as %+v, want one cooldown each", state, all)
		}
		if !here[0].Holds(c.Now().Add(48 * time.Hour)) {
			t.Errorf("%q ended without a command: %+v", state, here[0])
		}
		if !strings.Contains(here[0].Damage, "/pawl resume") {
			t.Errorf("%q names no remedy: %q", state, here[0].Damage)
		}
		lifted := thread.Cooldown{Backend: "codex", Cooldown: policy.Lifted(c.Now())}
		check(t, s.AppendLeased(t.Context(), l, thread.Batch{Cooldown: &lifted}))
		if left := must(s.Cooldowns(t.Context(), "octo/cat"))(t); len(left) > 0 {
			t.Errorf("%q: a command leaves %+v", state, left)
		}
		spoil(t, s, "DELETE FROM cooldowns")
	}
}

func spoil(t *testing.T, s *store.Store, query string, args ...any) {
	t.Helper()
	must(s.DB().ExecContext(t.Context(), query, args...))(t)
}
