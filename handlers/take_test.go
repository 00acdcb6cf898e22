package handlers

import (
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pawlbot/pawl/solver/thread"
)

func TestOfAnIgnoredRemarkLittleIsKept(t *testing.T) {
	long := strings.Repeat("é", 40_000)
	f := brief(thread.Feedback{Raw: long, Text: long, Baseline: long, Snapshot: &thread.Details{Title: "t", Body: long, Installation: 7}})
	if len(f.Raw) > maxIgnored || f.Text != "" || f.Baseline != "" || f.Snapshot.Body != "" || f.Snapshot.Installation != 7 || !utf8.ValidString(f.Raw) {
		t.Errorf("kept %d bytes of it, snapshot %+v", len(f.Raw), f.Snapshot)
	}
}

func TestTheTextsOfAnEditBackAreKept(t *testing.T) {
	f := brief(thread.Feedback{Raw: strings.Repeat("x", 40_000), Description: "a", Baseline: "b", Snapshot: &thread.Details{Title: "t", Body: "a"}})
	if len(f.Raw) > maxIgnored || f.Baseline != "b" || f.Snapshot.Body != "a" {
		t.Errorf("kept %d bytes, baseline %q, snapshot %+v; want the fold to know both texts", len(f.Raw), f.Baseline, f.Snapshot)
	}
}

// A newer version that was accepted makes an older one idle; one that was ignored
// does not, since nobody looked at its text.
func TestAnOlderVersionCountsUnlessANewerOneDid(t *testing.T) {
	for _, c := range []struct {
		name, editor string
		want         []string
	}{
		{"the author edits it", `{"id": 1001, "login": "ada", "type": "User"}`, []string{"+ /pawl solve more"}},
		{"a bot edits it", `{"id": 7, "login": "robot[bot]", "type": "Bot"}`, []string{"- /pawl solve more: robot[bot] is a bot that is not in allowed_bots", "+ /pawl solve"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newHouse(t)
			issue := w.Issue("@pawl please")
			w.Handle()
			before := len(w.Judged(issue))
			installation, err := w.GitHub.InstallationID(houseRepo)
			w.Must(err)
			made := w.Now().UTC().Truncate(time.Second)
			send := func(guid, action, text, sender string, at time.Time) {
				payload := fmt.Sprintf(`{"action": %q, "issue": {"number": %d, "title": "A title"}, "changes": {"body": {"from": "/pawl solve"}},
					"comment": {"id": 4711, "body": %q, "user": {"id": 1001, "login": "ada", "type": "User"}, "updated_at": %q},
					"repository": {"name": "widgets", "owner": {"login": "acme"}}, "installation": {"id": %d}, "sender": %s}`,
					action, issue.Number, text, at.Format(time.RFC3339), installation, sender)
				if _, err := handleComment(t.Context(), w.h, guid, []byte(payload)); err != nil {
					t.Fatal(err)
				}
			}
			send("newer", "edited", "/pawl solve more", c.editor, made.Add(time.Second))
			send("older", "created", "/pawl solve", `{"id": 1001, "login": "ada", "type": "User"}`, made)
			send("older", "created", "/pawl solve", `{"id": 1001, "login": "ada", "type": "User"}`, made)
			if got := w.Judged(issue)[before:]; fmt.Sprint(got) != fmt.Sprint(c.want) {
				t.Errorf("judged %q, want %q", got, c.want)
			}
		})
	}
}

// What was said before the App was taken out is brought by the list of deliveries
// only afterwards; nobody there may ask for anything, however often it is tried.
func TestWhereTheAppIsNoMoreNobodyMayWrite(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Nothing asked")
	w.Handle()
	installation, err := w.GitHub.InstallationID(houseRepo)
	w.Must(err)
	w.Must(w.GitHub.Uninstall(houseRepo))
	w.Handle()
	for guid, id := range map[string]int64{"gone": installation, "unknown": installation + 1000, "none": 0} {
		note, err := handleComment(t.Context(), w.h, guid, fmt.Appendf(nil, `{"action": "created", "issue": {"number": %d},
			"comment": {"id": 4711, "body": "/pawl solve", "user": {"id": 1001, "login": "ada", "type": "User"}, "updated_at": %q},
			"repository": {"id": 1, "name": "widgets", "owner": {"login": "acme"}}, "installation": {"id": %d}, "sender": {"id": 1001, "login": "ada", "type": "User"}}`,
			issue.Number, w.Now().UTC().Format(time.RFC3339), id))
		if err != nil || !strings.Contains(note, "permission") {
			t.Errorf("installation %s: %q, %v; want that ada has no permission", guid, note, err)
		}
	}
}

// GitHub's times are whole seconds, so such edits look alike.
func TestAnEditThereAndBackAndThereWithinASecondIsThreeEdits(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	id, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "/pawl retry")
	w.Must(err)
	made := w.Now().UTC()
	w.Handle()
	installation, err := w.GitHub.InstallationID(houseRepo)
	w.Must(err)
	was := "/pawl retry"
	for i, text := range []string{"/pawl resume", "/pawl retry", "/pawl resume"} {
		payload := fmt.Sprintf(`{"action": "edited", "issue": {"number": %d, "title": "A title"}, "changes": {"body": {"from": %q}},
			"comment": {"id": %d, "body": %q, "user": {"id": 1001, "login": "ada", "type": "User"}, "updated_at": %q},
			"repository": {"name": "widgets", "owner": {"login": "acme"}}, "installation": {"id": %d}, "sender": {"id": 1001, "login": "ada", "type": "User"}}`,
			issue.Number, was, id, text, made.Format(time.RFC3339), installation)
		for range 2 { // and the queue tries each again
			if _, err := handleComment(t.Context(), w.h, fmt.Sprint("guid-", i), []byte(payload)); err != nil {
				t.Fatal(err)
			}
		}
		was = text
	}
	want := []string{"+ /pawl retry", "+ /pawl resume", "+ /pawl retry", "+ /pawl resume"}
	if got := w.Judged(issue)[1:]; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("judged %q, want %q", got, want)
	}
}
