package policy

import "testing"

func TestSteerReachesARunningAttemptTenTimes(t *testing.T) {
	for _, c := range []struct {
		running bool
		before  int
		want    Steer
		reply   bool
	}{
		{running: false, before: 0, want: SteerIdle},
		{running: false, before: MaxSteers, want: SteerIdle},
		{running: true, before: 0, want: SteerAgent},
		{running: true, before: 9, want: SteerAgent},
		{running: true, before: 10, want: SteerFull, reply: true},
		{running: true, before: 11, want: SteerFull, reply: true},
	} {
		got := Steering{Running: c.running, Before: c.before}.Decide()
		if got != c.want || got.NeedsReply() != c.reply {
			t.Errorf("running %t after %d texts: %s, reported %t; want %s, reported %t", c.running, c.before, got, got.NeedsReply(), c.want, c.reply)
		}
	}
}

func TestReceiptNamesWhoSteered(t *testing.T) {
	quoted := func(login string) string { return "`" + login + "`" }
	for want, logins := range map[string][]string{
		"":                                  nil,
		"`ada` (1 time)":                    {"ada"},
		"`ada` (2 times), `grace` (1 time)": {"ada", "grace", "ada"},
	} {
		if got := (Receipt{Steered: CountSteers(logins)}).SteeredBy(quoted); got != want {
			t.Errorf("steered by %q: %q, want %q", logins, got, want)
		}
	}
	if row := CommandNamed("steer"); !row.Joins || row.Takes != TakesLines {
		t.Errorf("the command is %+v", row)
	}
}
