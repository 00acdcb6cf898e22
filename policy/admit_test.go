package policy

import (
	"testing"
	"time"
)

func TestNoAttemptWithoutABackend(t *testing.T) {
	decides(t, given().asked("solve").with(func(f *Facts) { f.Backends = nil }),
		Decision{Action: DoStop, Rule: "no_backend", Reasons: wanted("no backend is configured")})
	decides(t, given(unverified(), unverified(), unverified()).with(func(f *Facts) { f.Backends = nil }),
		Decision{Action: DoStop, Rule: "no_backend", Reasons: wanted("no backend is configured")})
}

func TestLimitedAccountNeedsAUsersCommand(t *testing.T) {
	reset := noon.Add(5 * time.Hour)
	never := time.Time{}
	moved := timedOut()
	moved.Backend, moved.Account = "claude", "spare"
	read(t, []sentence{
		{"new feedback tries again after one limit", given().limited(1, reset).alone().asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"with auto-continue, new feedback waits for the reset", given().limited(1, reset).alone().asked("").continuing(),
			Decision{Action: DoWait, Rule: "usage_limit", Until: reset}},
		{"a user's command does not wait for the reset", given().limited(1, reset).alone().asked("resume").continuing(),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a working account comes first", given().limited(1, reset).asked(""),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "claude"}},
		{"a pinned backend is tried although its account is limited", given().limited(1, reset).asked("").with(func(f *Facts) { f.Pinned = "codex" }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a run that changed its backend keeps the new one", given(atLimit(reset), moved).limited(1, reset),
			Decision{Action: DoAttempt, Rule: "progress", Backend: "claude"}},
		{"a run without new feedback does not try a limited account", given(timedOut()).limited(1, never).alone(),
			Decision{Action: DoStop, Rule: "no_backend", Reasons: wanted("account main: 1 × usage_limit in a row")}},
		{"after three limits, new feedback does not try the account", given().limited(3, reset).alone().asked(""),
			Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"after three limits with a known reset, commands do not try the account", given().limited(3, reset).alone().asked("resume", "retry", "escalate", "solve"),
			Decision{Action: DoStop, Rule: "usage_limit_breaker", Reasons: wanted("3 × usage_limit in a row")}},
		{"after three limits with an unknown reset, a resume tries the account", given().limited(3, never).alone().asked("resume"),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"after three limits with an unknown reset, a remark does not try the account", given().limited(3, never).alone().asked("solve", ""),
			Decision{Action: DoStop, Rule: "usage_limit_breaker"}},
		{"after the reset, any feedback tries the account", given().limited(3, reset).alone().asked("").with(func(f *Facts) { f.Now = reset }),
			Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestThreeRejectedLoginsNeedTheOperator(t *testing.T) {
	rejected := func(n int) Facts {
		return given().alone().with(func(f *Facts) { f.Backends[0].Breaker = Breaker{Kind: Auth, Consecutive: n, At: noon} })
	}
	read(t, []sentence{
		{"new feedback tries again after two", rejected(2).asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"new feedback does not try again after three", rejected(3).asked(""), Decision{Action: DoStop, Rule: "auth_breaker"}},
		{"a retry tries again after three", rejected(3).asked("retry"), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
	})
}

func TestAttemptWaitsForTheFirstFreeBackend(t *testing.T) {
	at := func(h int) time.Time { return noon.Add(time.Duration(h) * time.Hour) }
	held := func(change func(codex, claude *Backend)) Facts {
		return given().asked("").continuing().with(func(f *Facts) { change(&f.Backends[0], &f.Backends[1]) })
	}
	limit := func(n, hours int) Breaker {
		return Breaker{Kind: UsageLimit, Consecutive: n, ResetsAt: at(hours), At: noon}
	}
	read(t, []sentence{
		{"the earlier cooldown", held(func(codex, claude *Backend) { codex.Cooldown.Until, claude.Cooldown.Until = at(3), at(2) }),
			Decision{Action: DoWait, Rule: "cooldown", Until: at(2)}},
		{"the reset before the cooldown", held(func(codex, claude *Backend) { codex.Breaker, claude.Cooldown.Until = limit(1, 1), at(2) }),
			Decision{Action: DoWait, Rule: "usage_limit", Until: at(1)}},
		{"the cooldown before the reset", held(func(codex, claude *Backend) { codex.Breaker, claude.Cooldown.Until = limit(1, 3), at(2) }),
			Decision{Action: DoWait, Rule: "cooldown", Until: at(2)}},
		{"the cooldown of a limited account when that is later", held(func(codex, claude *Backend) {
			codex.Breaker, codex.Cooldown.Until, claude.Breaker = limit(1, 1), at(2), limit(3, 1)
		}), Decision{Action: DoWait, Rule: "cooldown", Until: at(2)}},
		{"a limited account before an open breaker", held(func(codex, claude *Backend) { codex.Breaker, claude.Breaker = limit(3, 1), limit(1, 4) }),
			Decision{Action: DoWait, Rule: "usage_limit", Until: at(4)}},
		{"two open breakers end the run", held(func(codex, claude *Backend) { codex.Breaker, claude.Breaker = limit(3, 1), limit(4, 2) }),
			Decision{Action: DoStop, Rule: "usage_limit_breaker", Reasons: wanted("account main: 3", "account spare: 4")}},
	})
}

func TestRestartWaitCountsFromTheLastAttempt(t *testing.T) {
	eleventh := given(many(11, timedOut(), timedOut())...)
	read(t, []sentence{
		{"the tenth restart does not wait", given(many(10, timedOut(), timedOut())...), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"the eleventh waits two seconds", eleventh, Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(2 * time.Second), Reasons: wanted("restart 11 waits 2s")}},
		{"a user's new words end the wait", eleventh.asked(""), Decision{Action: DoAttempt, Rule: "feedback", Backend: "codex"}},
		{"a repeated command does not end the wait", untyped(eleventh.asked("resume")), Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(2 * time.Second)}},
		{"the eleventh starts after its wait", eleventh.with(func(f *Facts) { f.Now = noon.Add(2 * time.Second) }), Decision{Action: DoAttempt, Rule: "progress", Backend: "codex"}},
		{"the thirtieth waits five minutes", given(many(30, timedOut(), timedOut())...), Decision{Action: DoWait, Rule: "backoff", Until: noon.Add(5 * time.Minute)}},
	})
}
