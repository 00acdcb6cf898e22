package handlers

import (
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/solver/thread"
)

// These tests show that each kind of webhook brings what the rules of
// policy/feedback judge by; the rules have their own tests there.

// scene is one thing that happens and what is to come of it: "" for nothing worth
// a line in the log, "+ reason" for what is accepted, "- reason" for what is
// ignored. Reasons may be parts.
type scene struct {
	name string
	do   func() error
	want string
}

// verdicts are the remarks of a log, in order.
func (w *house) verdicts(t thread.ID) []string {
	w.T.Helper()
	s := w.state(t)
	var list []string
	i, j := 0, 0
	for i < len(s.Feedback) || j < len(s.Ignored) {
		switch {
		case j == len(s.Ignored) || i < len(s.Feedback) && s.Feedback[i].Seq < s.Ignored[j].Seq:
			if f := s.Feedback[i]; f.Withdrawn != "" {
				list = append(list, "- "+f.Withdrawn)
			} else {
				list = append(list, "+ "+f.Reason)
			}
			i++
		default:
			list = append(list, "- "+s.Ignored[j].Reason)
			j++
		}
	}
	return list
}

// play lets things happen one after the other, each in a second of its own.
func (w *house) play(t thread.ID, scenes []scene) {
	w.T.Helper()
	for _, sc := range scenes {
		before := len(w.verdicts(t))
		w.Pass(2 * time.Second)
		if err := sc.do(); err != nil {
			w.T.Fatalf("%s: %v", sc.name, err)
		}
		w.Handle()
		news := w.verdicts(t)[before:]
		got := strings.Join(news, "; ")
		if sc.want == "" && got != "" || sc.want != "" && (len(news) != 1 || got[:2] != sc.want[:2] || !strings.Contains(got, sc.want[2:])) {
			w.T.Errorf("%s: judged %q, want %q", sc.name, got, sc.want)
		}
	}
}

// ownPull is the pull request that Pawl opened for an issue.
func (w *house) ownPull(issue thread.ID) int {
	w.T.Helper()
	branch := thread.State{}.Branch(issue)
	_, err := w.GitHub.PushCommit(w.T.Context(), houseRepo, "ada", fakegithub.Commit{Branch: branch, Message: "Two", Files: map[string]string{"a.txt": "one\ntwo\n"}})
	w.Must(err)
	installation, err := w.GitHub.InstallationID(houseRepo)
	w.Must(err)
	pull, err := w.Forge.PullRequests.Create(w.T.Context(), forge.Repo{Installation: installation, Owner: "acme", Name: "widgets"}, forge.NewPull{Title: render.Subject("Work", 72), Head: branch, Base: "main"})
	w.Must(err)
	w.Handle()
	return pull.Number
}

func (w *house) says(on int, who, text string) func() error {
	return func() error { _, err := w.GitHub.Comment(houseRepo, on, who, text); return err }
}

func TestOnlyPeopleWhoMayWriteAreListenedTo(t *testing.T) {
	w := newHouse(t)
	for login, role := range map[string]string{"stranger": "none", "triager": "triage", "keeper": "maintain", "boss": "admin"} {
		w.Must(w.GitHub.AddUser(login, int64(2000+len(login)), map[string]string{houseRepo: role}))
	}
	w.Must(w.GitHub.AddBot("dependabot[bot]", 76))
	issue := w.Issue("Please.")
	pull := w.ownPull(issue)
	n := issue.Number
	w.play(issue, []scene{
		{"a reader commands", w.says(n, "mallory", "/pawl solve"), "- mallory has read permission; write is needed"},
		{"a reader mentions", w.says(n, "mallory", "@pawl please"), "- mallory has read permission; write is needed"},
		{"a reader remarks on Pawl's pull request", w.says(pull, "mallory", "Add tests."), "- mallory has read permission; write is needed"},
		{"a stranger commands", w.says(n, "stranger", "/pawl solve"), "- stranger has none permission; write is needed"},
		{"a triager commands", w.says(n, "triager", "/pawl solve"), "- triager has triage permission; write is needed"},
		{"a bot commands", w.says(n, "dependabot[bot]", "/pawl solve"), "- dependabot[bot] is a bot that is not in allowed_bots"},
		{"a writer remarks on the issue", w.says(n, "ada", "Thank you."), "- it holds no command"},
		{"a maintainer commands", w.says(n, "keeper", "/pawl solve"), "+ command solve"},
		{"an administrator commands", w.says(n, "boss", "/pawl retry"), "+ command retry"},
		{"a writer mentions", w.says(n, "ada", "@pawl please add a line"), "+ command solve"},
		{"a writer remarks on Pawl's pull request", w.says(pull, "ada", "Add tests."), "+ a new comment on Pawl's pull request"},
	})
}

func TestAnEditedCommentCountsOnlyWhenItsAuthorEditedIt(t *testing.T) {
	w := newHouse(t)
	w.Must(w.GitHub.AddUser("bob", 1003, map[string]string{houseRepo: "admin"}))
	issue := w.Issue("Please.")
	own, err := w.GitHub.Comment(houseRepo, issue.Number, "ada", "Thank you.")
	w.Must(err)
	others, err := w.GitHub.Comment(houseRepo, issue.Number, "mallory", "Thank you, too.")
	w.Must(err)
	w.Handle()
	edits := func(id int64, who, text string) func() error {
		return func() error { return w.GitHub.EditComment(houseRepo, id, who, text) }
	}
	w.play(issue, []scene{
		{"another writer puts a command into it", edits(own, "bob", "/pawl solve"), "- bob edited the text of ada; only the author's own edit counts"},
		{"a writer puts a command into a reader's", edits(others, "bob", "/pawl solve"), "- bob edited the text of mallory"},
		{"its author, who may only read, edits it", edits(others, "mallory", "/pawl solve this"), "- mallory has read permission"},
		{"its author makes it a command", edits(own, "ada", "/pawl solve GAMMA"), "+ command solve"},
		{"its author changes white space", edits(own, "ada", "/pawl  solve GAMMA\r\n"), "- the edit did not change the content"},
	})
}

func TestADescriptionEditCountsOnlyWhenItsContentChanged(t *testing.T) {
	w := newHouse(t)
	const body = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] nothing else\n"
	const more = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] a THIRD line\n"
	issue := w.Issue(body)
	pull := w.ownPull(issue)
	other, err := w.GitHub.OpenIssue(houseRepo, "ada", "Another", "one")
	w.Must(err)
	edits := func(on int, who, text string) func() error {
		return func() error { return w.GitHub.EditBody(houseRepo, on, who, text) }
	}
	const same = "- the description's content did not change"
	n := issue.Number
	w.play(issue, []scene{
		{"a re-save", edits(n, "ada", body), same},
		{"a touched time stamp", func() error { return w.GitHub.TouchIssue(houseRepo, n, "ada") }, ""},
		{"another title", func() error { return w.GitHub.EditTitle(houseRepo, n, "ada", "Two lines") }, "- the description was not edited"},
		{"a ticked box", edits(n, "ada", strings.Replace(body, "[ ] line", "[x] line", 1)), same},
		{"line ends and white space", edits(n, "ada", strings.ReplaceAll(body, "\n", "  \r\n")+"\r\n\r\n"), same},
		{"Pawl's own block", edits(n, "ada", body+"\n<!-- pawl:begin -->\nSeen 3 times\n<!-- pawl:end -->\n"), same},
		{"an HTML comment", edits(n, "ada", body+"<!-- /pawl solve -->"), same},
		{"a reader's change", edits(n, "mallory", body+"- [ ] for me"), "- mallory has read permission"},
		{"the way back from it", edits(n, "ada", body), "- the description was edited back"},
		{"a reader's way back", edits(n, "mallory", body+"\n"), same},
		{"a change", edits(n, "ada", more), "+ the description's content changed"},
		{"a reader takes it back", edits(n, "mallory", body), "- mallory has read permission"},
		{"a further change", edits(n, "ada", more+"- [ ] a FOURTH line\n"), "+ the description's content changed"},
		{"a re-saved pull request", edits(pull, "ada", "Work."), "+ the description's content changed"},
		{"the same of the pull request", edits(pull, "ada", "Work."), same},
		{"an issue that Pawl does not work on", edits(other, "ada", "two"), ""},
	})
	for _, f := range w.state(issue).Feedback {
		if f.Withdrawn != "" {
			t.Errorf("%q of %s was taken back: %s", f.Raw, f.By.Login, f.Withdrawn)
		}
	}
	if len(w.Log(thread.ID{Owner: "acme", Name: "widgets", Number: other})) > 0 {
		t.Error("an issue that Pawl does not work on has a log")
	}
}

// What people see as asked for must go when it is taken back, and nothing else wakes a
// thread for a remark that asks for nothing.
func TestADescriptionThatIsEditedBackWakesItsThread(t *testing.T) {
	w := newHouse(t)
	const body = "Please add a second line to a.txt."
	issue := w.Issue(body)
	due := func() bool {
		t.Helper()
		leases, err := w.Store.Claim(t.Context(), "test", 10)
		w.Must(err)
		for _, l := range leases {
			w.Must(w.Store.Release(t.Context(), l, nil))
		}
		return len(leases) > 0
	}
	due()
	for _, c := range []struct {
		name, text string
		wakes      bool
	}{
		{"a change", body + " And a third.", true},
		{"the way back", body, true},
		{"a re-save", body + "\n", false},
	} {
		w.Must(w.GitHub.EditBody(houseRepo, issue.Number, "ada", c.text))
		w.Handle()
		if got := due(); got != c.wakes {
			t.Errorf("after %s the thread is due: %t, want %t", c.name, got, c.wakes)
		}
	}
}

func TestLabelsReviewsAndNewThreadsAsk(t *testing.T) {
	w := newHouse(t)
	issue := w.Issue("Please.")
	pull := w.ownPull(issue)
	n := issue.Number
	label := func(who, name string) func() error {
		return func() error { return w.GitHub.AddLabel(houseRepo, n, who, name) }
	}
	review := func(who, state, text string) func() error {
		return func() error { _, err := w.GitHub.Review(houseRepo, pull, who, state, text); return err }
	}
	w.play(issue, []scene{
		{"another label", label("ada", "bug"), `- label "bug" is not "pawl"`},
		{"the label by a reader", label("mallory", "pawl"), "- mallory has read permission"},
		{"the label taken off", func() error { return w.GitHub.RemoveLabel(houseRepo, n, "ada", "pawl") }, ""},
		{"the label", label("ada", "pawl"), `+ label "pawl" was added`},
		{"an approval", review("ada", "APPROVED", "Very nice."), "- an approval asks for no work"},
		{"a request for changes", review("ada", "CHANGES_REQUESTED", "Use REVIEWED words."), "+ a review requests changes"},
		{"a request for changes without a text", review("ada", "CHANGES_REQUESTED", ""), "+ a review requests changes"},
		{"a request for changes by a reader", review("mallory", "CHANGES_REQUESTED", "No."), "- mallory has read permission"},
		{"a review that remarks", review("ada", "COMMENTED", "What about b.txt?"), "+ a review remark on Pawl's pull request"},
		{"a command in an approval", review("ada", "APPROVED", "/pawl solve the rest"), "+ command solve"},
	})
	_, err := w.GitHub.ReviewComment(t.Context(), houseRepo, pull, "ada", "a.txt", 2, "LINED remark")
	w.Must(err)
	w.Handle()
	if f := w.state(issue).Feedback; !strings.Contains(f[len(f)-1].Text, "LINED remark") {
		t.Errorf("the last feedback is %+v, want the remark on a line", f[len(f)-1])
	}
	for _, tc := range []struct{ title, body, label string }{
		{"by mention", "@pawl please add a line.", ""}, {"by command", "See a.txt.\n\n/pawl solve", ""}, {"by label", "Add a line.", "pawl"},
	} {
		var labels []string
		if tc.label != "" {
			labels = []string{tc.label}
		}
		opened, err := w.GitHub.OpenIssue(houseRepo, "ada", tc.title, tc.body, labels...)
		w.Must(err)
		w.Handle()
		var asked int
		for _, v := range w.verdicts(thread.ID{Owner: "acme", Name: "widgets", Number: opened}) {
			if strings.HasPrefix(v, "+ ") {
				asked++
			}
		}
		if asked != 1 {
			t.Errorf("an issue that asks %s was accepted %d times, want once", tc.title, asked)
		}
	}
}
