package handlers

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/solver/thread"
)

func TestIgnoredRemarkIsShortened(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	f := brief(thread.Feedback{Raw: long, Text: long, Baseline: long, Snapshot: &thread.Details{Title: "t", Body: long, Installation: 7}})
	if len(f.Raw) > maxIgnored || f.Text != "" || f.Baseline != "" || f.Snapshot.Body != "" || f.Snapshot.Installation != 7 || !utf8.ValidString(f.Raw) {
		t.Errorf("kept %d bytes of it, snapshot %+v", len(f.Raw), f.Snapshot)
	}
}

func TestTextsOfARestoredDescriptionAreKept(t *testing.T) {
	f := brief(thread.Feedback{Raw: strings.Repeat("x", 40_000), Description: "a", Baseline: "b", Snapshot: &thread.Details{Title: "t", Body: "a"}})
	if len(f.Raw) > maxIgnored || f.Baseline != "b" || f.Snapshot.Body != "a" {
		t.Errorf("kept %d bytes, baseline %q, snapshot %+v; want both texts kept", len(f.Raw), f.Baseline, f.Snapshot)
	}
}

// An accepted newer version makes an older one irrelevant. An ignored one does not, since its text was not judged.
func TestOlderVersionCountsWithoutANewerOne(t *testing.T) {
	for _, c := range []struct {
		name, editor string
		want         []string
	}{
		{"the author edits it", "", []string{"+ /pawl solve more"}},
		{"a bot edits it", `{"id": 7, "login": "robot[bot]", "type": "Bot"}`, []string{"- /pawl solve more: robot[bot] is a bot that is not in allowed_bots", "+ /pawl solve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newRig(t)
			issue := w.Issue("@pawl please")
			w.Handle()
			before := len(w.Judged(issue))
			began := w.Now().UTC().Truncate(time.Second)
			older := commentEvent{id: 4711, action: "created", text: "/pawl solve"}
			newer := commentEvent{id: 4711, action: "edited", was: "/pawl solve", text: "/pawl solve more", second: 1, sender: c.editor}
			w.Must(w.deliver(w.h, issue, "newer", newer, began))
			w.Must(w.deliver(w.h, issue, "older", older, began))
			w.Must(w.deliver(w.h, issue, "older", older, began))
			if got := w.Judged(issue)[before:]; fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

// Deliveries from before the uninstallation may arrive later. Their remarks do not count.
func TestUninstalledAppGivesNoPermission(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Nothing asked")
	w.Handle()
	installation, err := w.GitHub.InstallationID(testRepo)
	w.Must(err)
	w.Must(w.GitHub.Uninstall(testRepo))
	w.Handle()
	for guid, id := range map[string]int64{"gone": installation, "unknown": installation + 1000, "none": 0} {
		command := commentEvent{id: 4711, action: "created", text: "/pawl solve"}
		note, err := handleComment(t.Context(), w.h, guid, command.payload(issue.Number, id, w.Now().UTC()))
		if err != nil || !strings.Contains(note, "installed") {
			t.Errorf("installation %s: %q, %v; want a note that the App is not installed", guid, note, err)
		}
	}
}

// GitHub's times are whole seconds, so such edits look alike.
func TestEditsWithinOneSecondAreSeparate(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please.")
	made := w.Now().UTC()
	id := w.Writes(issue.Number, "ada", "/pawl retry")
	was := "/pawl retry"
	for i, text := range []string{"/pawl resume", "/pawl retry", "/pawl resume"} {
		for range 2 { // the queue repeats each delivery
			w.Must(w.deliver(w.h, issue, fmt.Sprint("guid-", i), commentEvent{id: id, action: "edited", was: was, text: text}, made))
		}
		was = text
	}
	want := []string{"+ /pawl retry", "+ /pawl resume", "+ /pawl retry", "+ /pawl resume"}
	if got := w.Judged(issue)[1:]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("judged %q, want %q", got, want)
	}
}

func TestCommandBeforeItsIssuesOpeningCounts(t *testing.T) {
	w := newRig(t)
	w.GitHub.Hold()
	n, err := w.GitHub.OpenIssue(testRepo, "ada", "A title", "@pawl please add a line.")
	w.Must(err)
	w.Must(w.comments(n, "ada", "/pawl solve it")())
	held := w.GitHub.Held()
	w.GitHub.Release(held[1].GUID, held[0].GUID)
	w.Handle()
	want := []string{"+ /pawl solve it", "+ @pawl please add a line."}
	if diff := cmp.Diff(want, w.Judged(thread.ID{Owner: "acme", Name: "widgets", Number: n})); diff != "" {
		t.Errorf("judged (-want +got):\n%s", diff)
	}
}
