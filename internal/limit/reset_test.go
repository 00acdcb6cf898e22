package limit

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

// at parses a time in RFC 3339.
func at(t testing.TB, s string) time.Time {
	t.Helper()
	v, err := time.Parse(time.RFC3339, s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func zoneOf(t testing.TB, name string) *time.Location {
	t.Helper()
	z, err := time.LoadLocation(name)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestResetTimeForms(t *testing.T) {
	now := "2026-11-21T08:30:00Z"
	for _, c := range []struct{ text, now, zone, want string }{
		{"usage limit reached|1795251986", now, "UTC", "2026-11-21T09:06:26Z"},
		{`{"resets_at": 1795251986}`, now, "UTC", "2026-11-21T09:06:26Z"},
		{`{"resetsAt":1795251986000}`, now, "UTC", "2026-11-21T09:06:26Z"},
		{`"retry-after": "13471"`, now, "UTC", "2026-11-21T12:14:31Z"},
		{"Please retry after 2733 seconds. (limited)", now, "UTC", "2026-11-21T09:15:33Z"},
		{`{"retryDelay":"34.5s"}`, now, "UTC", "2026-11-21T08:30:34.5Z"},
		{"or try again at 9:06 AM.", now, "UTC", "2026-11-21T09:06:00Z"},
		{"or try again at 9:06\u202fAM.", now, "UTC", "2026-11-21T09:06:00Z"},
		{"or try again at 8:15 AM.", now, "UTC", "2026-11-21T08:15:00Z"}, // just passed
		{"or try again at 7:15 AM.", now, "UTC", "2026-11-22T07:15:00Z"},
		{"You've hit your session limit · resets 6:40pm (Asia/Kolkata)", "2026-07-15T13:20:00Z", "UTC", "2026-07-15T13:10:00Z"},
		{"You've hit your session limit · resets 6:40pm (Asia/Kolkata)", "2026-07-15T16:10:00Z", "UTC", "2026-07-15T16:10:00Z"},
		{"5-hour limit reached, resets 8:40am", "2026-07-15T16:10:00Z", "UTC", "2026-07-15T16:10:00Z"},
		{"5-hour limit reached, resets 8:40pm", "2026-07-15T16:10:00Z", "UTC", "2026-07-15T20:40:00Z"},
		{"session limit reached, resets in 9 hours", now, "UTC", now},
		{"weekly limit reached, resets 8:10am", "2026-07-15T16:10:00Z", "UTC", "2026-07-16T08:10:00Z"},
		{"daily limit reached, resets in 30 hours", now, "UTC", now},
		{"or try again at 12:05 AM.", now, "UTC", "2026-11-22T00:05:00Z"},
		{"try again at 9:06 AM", now, "Europe/Rome", "2026-11-21T08:06:00Z"}, // just passed
		{"try again at 8:30 AM", "2026-11-21T08:30:40Z", "UTC", "2026-11-21T08:30:00Z"},
		{"try again at Nov 24th, 2026 8:19 AM.", now, "UTC", "2026-11-24T08:19:00Z"},
		{"resets 4:50am (Europe/Rome)", now, "UTC", "2026-11-22T03:50:00Z"},
		{"resets Nov 24, 8:19am (UTC)", now, "Asia/Tokyo", "2026-11-24T08:19:00Z"},
		{"resets Oct 31, 9am", "2026-10-29T08:00:00Z", "UTC", "2026-10-31T09:00:00Z"},
		{"resets Jan 2, 9am", "2026-12-30T08:00:00Z", "UTC", "2027-01-02T09:00:00Z"},
		{"resets Nov 25 at 4:30am (Asia/Kolkata)", now, "UTC", "2026-11-24T23:00:00Z"},
		{"limit reached ∙ resets 18:00", now, "UTC", "2026-11-21T18:00:00Z"},
		{"Access resets at 2:55 PM PST.", now, "UTC", "2026-11-21T22:55:00Z"},
		{"resets at 2:55 PM UTC+2", now, "UTC", "2026-11-21T12:55:00Z"},
		{"try again in 2 days 17 hours 14 minutes.", now, "UTC", "2026-11-24T01:44:00Z"},
		{"quota will reset after 8h44m7s.", now, "UTC", "2026-11-21T17:14:07Z"},
		{"Please try again in 58 hours.", now, "UTC", "2026-11-23T18:30:00Z"},
		{"[retrying in 8h 13m attempt #1]", now, "UTC", "2026-11-21T16:43:00Z"},
		{"Please wait 2 minutes before", now, "UTC", "2026-11-21T08:32:00Z"},
		{"Please try again in 28ms.", now, "UTC", "2026-11-21T08:30:00.028Z"},
		{"wait for your limit to reset on November 24, 2026 at 2:00 AM or", now, "UTC", "2026-11-24T02:00:00Z"},
		{"try again at 24 de nov. de 2026, 11:52.", now, "UTC", "2026-11-24T11:52:00Z"},
		{"try again at 24. November 2026 um 11:52", now, "UTC", "2026-11-24T11:52:00Z"},
		{"try again at 24 juil. 2027, 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 24.11.2026, 11:52", now, "UTC", "2026-11-24T11:52:00Z"},
		{"available again at 2026-11-24T11:52:00Z", now, "Asia/Tokyo", "2026-11-24T11:52:00Z"},
		{"resets tomorrow at 9am", now, "UTC", "2026-11-22T09:00:00Z"},
		{"resets Monday 9am", now, "UTC", "2026-11-23T09:00:00Z"},
		{"try again at 3pm PT", now, "UTC", "2026-11-21T23:00:00Z"},
		{"resets 3:45 p.m. ET", "2026-07-01T08:00:00Z", "UTC", "2026-07-01T19:45:00Z"},
		{"resets 3pm tomorrow", now, "UTC", "2026-11-22T15:00:00Z"},
		{"resets at 9 AM (UTC) on Nov 24", now, "Asia/Tokyo", "2026-11-24T09:00:00Z"},
		{"resets at midnight UTC", now, "Asia/Tokyo", "2026-11-22T00:00:00Z"},
		{"try again in less than a minute", now, "UTC", "2026-11-21T08:31:00Z"},
		{"try again in about an hour.", now, "UTC", "2026-11-21T09:30:00Z"},
		{"Resets on Nov 24", now, "Asia/Tokyo", "2026-11-23T15:00:00Z"},
		{"resets Nov 24 (UTC)", now, "Asia/Tokyo", "2026-11-24T00:00:00Z"},
		{"You will regain access on 2026-12-01 at 00:00 UTC.", now, "Asia/Tokyo", "2026-12-01T00:00:00Z"},
		{"resets in 2:30:00", now, "UTC", "2026-11-21T11:00:00Z"},
		{"resets in 2h30m", now, "UTC", "2026-11-21T11:00:00Z"},
		{"resets at 15h30", now, "UTC", "2026-11-21T15:30:00Z"},
		{`"reset_at": "2026-11-24T11:52:00+02:00"`, now, "UTC", "2026-11-24T09:52:00Z"},
		{"try again at 24 juil. 2027 à 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 24 июл. 2027 г., 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 24 lip 2027, 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 24. jul. 2027 11.52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 24.7.2027 klo 11.52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 2027/07/24 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 2027年7月24日 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 2027. 7. 24. 오후 11:52", now, "UTC", "2027-07-24T23:52:00Z"},
		{"try again at 24/07/2027, 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		{"try again at 7/24/2027, 11:52:03 PM", now, "UTC", "2027-07-24T23:52:03Z"},
		{"try again at 24-Jul-2027 11:52", now, "UTC", "2027-07-24T11:52:00Z"},
		// Rome moved its clocks back at 03:00 on 25 October 2026: the day has 25 hours.
		{"resets 9am (Europe/Rome)", "2026-10-24T08:00:00Z", "UTC", "2026-10-25T08:00:00Z"},
		// New York moved its clocks forward at 02:00 on 8 March 2026.
		{"resets 3:30am (America/New_York)", "2026-03-08T05:00:00Z", "UTC", "2026-03-08T07:30:00Z"},
	} {
		got, ok := ResetTime(c.text, at(t, c.now), zoneOf(t, c.zone))
		if !ok || !got.Equal(at(t, c.want)) {
			t.Errorf("%q at %s in %s: %s, %v; want %s", c.text, c.now, c.zone, got.UTC().Format(time.RFC3339Nano), ok, c.want)
		}
	}
}

func TestUnknownResetTimesStayUnknown(t *testing.T) {
	for _, text := range []string{
		"", "You've hit your usage limit.", "try again later.", "5-hour limit reached", "resets soon",
		"[2026-11-21T08:00:00Z] [INFO] usage limit", "at 9:06 AM the build failed", "resets at 25:00",
		"resets at 13 PM", "resets at 9:75", "resets 3pm (Mars/Olympus)", "resets 3pm (Local)", "resets at 2:55 PM IST",
		"resets Nov 31, 9am", "resets on 10/11/2026, 9:00", "resets 5", "try again in 99999999 days", "Resets on Nov 24, 25:00",
	} {
		if got, ok := ResetTime(text, at(t, "2026-11-21T08:30:00Z"), nil); ok {
			t.Errorf("%q gave %s", text, got)
		}
	}
}

func TestClockTimeIsItsNextOccurrence(t *testing.T) {
	zones := []string{"UTC", "Europe/Rome", "America/New_York", "Asia/Kolkata", "Australia/Lord_Howe"}
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(rapid.Int64Range(1_700_000_000, 1_900_000_000).Draw(t, "now"), 0)
		zone, err := time.LoadLocation(rapid.SampledFrom(zones).Draw(t, "zone"))
		if err != nil {
			t.Fatal(err)
		}
		clock := time.Date(2026, 1, 1, rapid.IntRange(0, 23).Draw(t, "hour"), rapid.IntRange(0, 59).Draw(t, "minute"), 0, 0, time.UTC)
		form := rapid.SampledFrom([]string{"15:04", "3:04 PM", "3:04pm"}).Draw(t, "form")
		got, ok := ResetTime("resets "+clock.Format(form), now, zone)
		if !ok {
			t.Fatalf("%s was not read", clock.Format(form))
		}
		// The day of a clock change has up to 25 hours.
		if wait := got.Sub(now); wait <= -2*time.Minute-2*time.Hour || wait > 25*time.Hour {
			t.Fatalf("%s at %s in %s is %s away", clock.Format(form), now.In(zone), zone, wait)
		}
	})
}

func FuzzResetTime(f *testing.F) {
	for _, s := range []string{"resets 4:50am (Europe/Rome)", "try again in 2 days 17 hours", "reached|1760004000", "again at Nov 24th, 2026 8:19 AM", "retry-after: 13471", "resets 10 de jul. de 2026, 11:52"} {
		f.Add(s)
	}
	now := time.Date(2026, 11, 21, 8, 30, 0, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		got, ok := ResetTime(text, now, nil)
		if ok == got.IsZero() {
			t.Errorf("%q: %s, %v", text, got, ok)
		}
		again, _ := ResetTime(text, now, nil)
		if !got.Equal(again) {
			t.Errorf("%q: %s and %s", text, got, again)
		}
	})
}
