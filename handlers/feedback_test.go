package handlers

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/handlers/handlerstest"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/solver/thread"
)

// These tests check that each kind of webhook provides the inputs of policy/feedback, which has its own tests.

// scene is an event and its expected result: "" for no log entry, "+ reason" if accepted, "- reason" if ignored.
// Reasons may be parts.
type scene struct {
	name string
	do   func() error
	want string
}

// play runs scenes in order, each in its own second.
func (w *rig) play(t thread.ID, scenes []scene) {
	w.T.Helper()
	for _, sc := range scenes {
		before := len(handlerstest.Verdicts(w.state(t)))
		w.Pass(2 * time.Second)
		if err := sc.do(); err != nil {
			w.T.Fatalf("%s: %v", sc.name, err)
		}
		w.Handle()
		news := handlerstest.Verdicts(w.state(t))[before:]
		got := strings.Join(news, "; ")
		if sc.want == "" && got != "" || sc.want != "" && (len(news) != 1 || got[:2] != sc.want[:2] || !strings.Contains(got, sc.want[2:])) {
			w.T.Errorf("%s: judged %q, want %q", sc.name, got, sc.want)
		}
	}
}

// ownPull returns Pawl's pull request for an issue.
func (w *rig) ownPull(issue thread.ID) int {
	w.T.Helper()
	branch := thread.State{}.Branch(issue)
	w.push(branch, "Two", "a.txt", "one\ntwo\n")
	installation, err := w.GitHub.InstallationID(testRepo)
	w.Must(err)
	pull, err := w.Forge.PullRequests.Create(w.T.Context(), forge.Repo{Installation: installation, Owner: "acme", Name: "widgets"}, forge.NewPull{Title: render.Subject("Work", 72), Head: branch, Base: "main"})
	w.Must(err)
	w.Handle()
	return pull.Number
}

func (w *rig) comments(on int, who, text string) func() error {
	return func() error { _, err := w.GitHub.Comment(testRepo, on, who, text); return err }
}

func TestOnlyUsersWithWritePermissionAreAccepted(t *testing.T) {
	w := newRig(t)
	for login, role := range map[string]string{"stranger": "none", "triager": "triage", "keeper": "maintain"} {
		w.Must(w.GitHub.AddUser(login, int64(2000+len(login)), map[string]string{testRepo: role}))
	}
	w.Must(w.GitHub.AddBot("dependabot[bot]", 76))
	w.Must(w.GitHub.AddBot("helper[bot]", 77))
	w.h.Solver.Env.Config.Policy.AllowedBots = []int64{77}
	issue := w.Issue("Please.")
	pull := w.ownPull(issue)
	n := issue.Number
	w.play(issue, []scene{
		{"a reader commands", w.comments(n, "mallory", "/pawl solve"), "- mallory has read permission; write is needed"},
		{"a reader mentions", w.comments(n, "mallory", "@pawl please"), "- mallory has read permission; write is needed"},
		{"a reader remarks on Pawl's pull request", w.comments(pull, "mallory", "Add tests."), "- mallory has read permission; write is needed"},
		{"a stranger commands", w.comments(n, "stranger", "/pawl solve"), "- stranger has none permission; write is needed"},
		{"a triager commands", w.comments(n, "triager", "/pawl solve"), "- triager has triage permission; write is needed"},
		{"a bot commands", w.comments(n, "dependabot[bot]", "/pawl solve"), "- dependabot[bot] is a bot that is not in allowed_bots"},
		{"a listed bot commands", w.comments(n, "helper[bot]", "/pawl solve"), "+ command solve"},
		{"a writer remarks on the issue", w.comments(n, "ada", "Thank you."), "- it holds no command"},
		{"a writer pauses", w.comments(n, "ada", "/pawl pause"), "- ada has write permission; pause needs maintain"},
		{"a maintainer commands", w.comments(n, "keeper", "/pawl solve"), "+ command solve"},
		{"a writer mentions", w.comments(n, "ada", "@pawl please add a line"), "+ command solve"},
		{"a writer remarks on Pawl's pull request", w.comments(pull, "ada", "Add tests."), "+ a new comment on Pawl's pull request"},
		{"a writer who lost the permission commands", func() error {
			return errors.Join(w.GitHub.SetRole(testRepo, "ada", "read"), w.comments(n, "ada", "/pawl solve")())
		}, "- ada has read permission"},
	})
}

func TestPawlsAndAgentsTextsAskForNothing(t *testing.T) {
	w := newRig(t)
	const description, added = "Please add a line.", "Progress: two of three steps are finished."
	issue := w.Issue(description)
	pull, n := w.ownPull(issue), issue.Number
	own := w.Writes(n, "pawl[bot]", "**Done**")
	w.posts(issue, "gh issue comment --body '/pawl solve it'; gh issue comment --body '/pawl stop'; gh issue edit --body '"+added+"'")
	const marker = "<!-- pawl:status acme/widgets#1 -->\n"
	w.play(issue, []scene{
		{"a writer posts a text with Pawl's marker", w.comments(pull, "ada", marker+"/pawl solve"), "- it carries a marker of Pawl"},
		{"a writer quotes such a text", w.comments(pull, "ada", "> "+marker+"> **Done**\n\nAdd a third line."), "+ a new comment"},
		{"a writer edits what Pawl wrote", func() error { return w.GitHub.EditComment(testRepo, own, "ada", "/pawl solve") }, "- the text belongs to this App's bot user"},
		{"the agent comments under a writer's name", w.comments(n, "ada", "/pawl solve it"), "- the agent wrote it itself during"},
		{"the agent adds to the description", func() error { return w.GitHub.EditBody(testRepo, n, "ada", description+"\n\n"+added) }, "- the agent wrote it itself during"},
		{"a writer adds to the description", func() error { return w.GitHub.EditBody(testRepo, n, "ada", description+"\n\nAnd a test.") }, "+ the description's content changed"},
		{"a writer stops with a command that the agent also wrote", w.comments(n, "ada", "/pawl stop"), ""},
	})
	if s := w.state(issue); s.Stopped != "ada asked to stop" {
		t.Errorf("the thread is stopped because %q", s.Stopped)
	}
}

func TestUntrackedThreadsKeepOnlyRemarksToPawl(t *testing.T) {
	w := newRig(t)
	issue := w.Opened(strings.Repeat("talk ", 1000))
	n := issue.Number
	const refused = "- mallory has read permission"
	w.play(issue, []scene{
		{"a writer talks", w.comments(n, "ada", "Nice weather."), ""},
		{"a reader talks", w.comments(n, "mallory", "spam"), ""},
		{"the description changes", func() error { return w.GitHub.EditBody(testRepo, n, "ada", "less talk") }, ""},
		{"a reader commands", w.comments(n, "mallory", "/pawl solve "+strings.Repeat("é", 10000)), refused},
		{"a reader mentions", w.comments(n, "mallory", "@pawl please"), refused},
	})
	for _, f := range w.state(issue).Ignored {
		if len(f.Raw) > maxIgnored || f.Text != "" || f.Snapshot == nil || f.Snapshot.Title+f.Snapshot.Body != "" {
			t.Errorf("%d bytes and %+v of an ignored remark are kept, want %d and no texts", len(f.Raw), f.Snapshot, maxIgnored)
		}
	}
}

// replies returns the answers that a thread owes, as "command login", in a private or public repository.
func (w *rig) replies(t thread.ID, private bool) (all []string) {
	w.T.Helper()
	for _, q := range w.state(t).Questions {
		all = append(all, q.Command+" "+q.By.Login)
		if q.Private != private {
			w.T.Errorf("%+v: private %t, want %t", q, q.Private, private)
		}
	}
	return all
}

func TestRefusalIsPostedOnceADay(t *testing.T) {
	for _, private := range []bool{true, false} {
		w := newRig(t)
		if !private {
			w.Must(w.GitHub.Publish(testRepo))
		}
		w.Must(w.GitHub.AddUser("eve", 1004, map[string]string{testRepo: "read"}))
		w.Must(w.GitHub.AddBot("helper[bot]", 77))
		w.h.Solver.Env.Config.Policy.AllowedBots = []int64{77}
		one, two := w.Issue("Please."), w.Issue("Ask @pawl for it.") // a mention in the description
		for _, c := range []struct {
			on        thread.ID
			who, text string
		}{
			{one, "mallory", "/pawl solve"}, {one, "mallory", "/pawl stop"}, {two, "mallory", "@pawl do it"},
			{one, "mallory", "I like @pawl very much."}, {two, "eve", "/pawl solve"},
			{one, "ada", "Could @pawl do it?"}, {one, "ada", "Well, @pawl?"},
			{two, "ada", "Mail foo@pawl.example."}, {two, "ada", "See `@pawl`."}, {two, "ada", "> ask @pawl"}, {two, "ada", "```\nask @pawl now\n```"},
			{two, "ada", "We use @pawl-next and @pawl/team."}, {two, "helper[bot]", "I think @pawl could do it."}, {two, "pawl[bot]", "I think @pawl could do it."},
		} {
			w.Writes(c.on.Number, c.who, c.text)
		}
		want := []string{"refused mallory", "no_order ada", "no_order ada", "refused eve"}
		if diff := cmp.Diff(want, append(w.replies(one, private), w.replies(two, private)...)); diff != "" {
			t.Errorf("private %t (-want +got):\n%s", private, diff)
		}
		w.Pass(24 * time.Hour)
		w.Writes(two.Number, "mallory", "/pawl solve")
		if got := w.replies(two, private); len(got) != 3 {
			t.Errorf("a day later the answers are %q, want one more", got)
		}
	}
}

func TestNearCommandIsObeyedOrAnswered(t *testing.T) {
	w := newRig(t)
	obeyed, answered := "obeyed", "near_order ada"
	for text, want := range map[string]string{
		"  /pawl solve": obeyed, "\u00a0/pawl solve": obeyed, "\u200b/pawl solve": obeyed, "\ufeff/pawl solve": obeyed,
		"- /pawl solve": obeyed, "**/pawl solve**": obeyed, "/pawl: solve": obeyed, "/PAWL Solve please": obeyed, "\uff0fpawl solve": obeyed,
		"1. @pawl please mend it": obeyed, "Hello\n@pawl please mend it": obeyed, "@pawl\u00a0please mend it": obeyed,
		"/pawl-solve": answered, "please /pawl solve": answered, "pawl solve": answered, "\t/pawl solve": answered, "`/pawl solve`": answered,
	} {
		issue := w.Opened("Please.")
		w.Writes(issue.Number, "ada", text)
		got := strings.Join(w.replies(issue, true), ", ")
		if got == "" && len(w.state(issue).Pending()) > 0 {
			got = obeyed
		}
		if got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
	issue := w.Opened("Please.")
	for range 2 {
		w.Writes(issue.Number, "ada", "please /pawl solve")
	}
	w.Writes(issue.Number, "mallory", "please /pawl solve")
	w.Must(w.GitHub.EditBody(testRepo, issue.Number, "ada", "Please.\n\n/pawl solve"))
	w.Handle()
	if diff := cmp.Diff([]string{answered, answered, answered}, w.replies(issue, true)); diff != "" {
		t.Errorf("two comments and an edited description (-want +got):\n%s", diff)
	}
}

func TestAssignmentAndReviewRequestAskPawl(t *testing.T) {
	w := newRig(t)
	w.h.StandIn = "Pawl-Agent"
	w.Must(w.GitHub.AddUser("pawl-agent", 1003, map[string]string{testRepo: "read"}))
	pull := w.Pull()
	n := 0
	assigns := func(who, whom string) func() error {
		return func() error { return w.GitHub.Assign(testRepo, n, who, whom) }
	}
	asks := func(who, whom string) func() error {
		return func() error { return w.GitHub.AskReview(testRepo, pull.Number, who, whom) }
	}
	for _, c := range []scene{
		{"the writer", assigns("ada", "ada"), ""},
		{"Pawl by a reader", assigns("mallory", "pawl[bot]"), "- mallory has read permission"},
		{"its stand-in by a reader", assigns("mallory", "pawl-agent"), "- mallory has read permission"},
		{"Pawl", assigns("ada", "pawl[bot]"), "+ pawl[bot] was assigned"},
		{"its stand-in", assigns("ada", "pawl-agent"), "+ pawl-agent was assigned"},
		{"Pawl by itself", assigns("pawl[bot]", "pawl[bot]"), ""},
	} {
		issue := w.Opened("Please.")
		n = issue.Number
		w.play(issue, []scene{c})
	}
	w.play(pull, []scene{
		{"a review by another user", asks("ada", "mallory"), ""},
		{"a review by Pawl's stand-in, asked by a reader", asks("mallory", "pawl-agent"), "- mallory has read permission"},
		{"a review by Pawl", asks("ada", "pawl[bot]"), "+ pawl[bot] was asked for a review"},
	})
}

func TestOnlyAuthorsEditsCount(t *testing.T) {
	w := newRig(t)
	w.Must(w.GitHub.AddUser("bob", 1003, map[string]string{testRepo: "admin"}))
	issue := w.Issue("Please.")
	own, others := w.Writes(issue.Number, "ada", "Thank you."), w.Writes(issue.Number, "mallory", "Thank you, too.")
	edits := func(id int64, who, text string) func() error {
		return func() error { return w.GitHub.EditComment(testRepo, id, who, text) }
	}
	w.play(issue, []scene{
		{"another writer puts a command into it", edits(own, "bob", "/pawl solve"), "- bob edited the text of ada; only the author's own edit counts"},
		{"a writer puts a command into a reader's", edits(others, "bob", "/pawl solve"), "- bob edited the text of mallory"},
		{"its author, who may only read, edits it", edits(others, "mallory", "/pawl solve this"), "- mallory has read permission"},
		{"its author makes it a command", edits(own, "ada", "/pawl solve GAMMA"), "+ command solve"},
		{"its author changes white space", edits(own, "ada", "/pawl  solve GAMMA\r\n"), "- the edit did not change the content"},
	})
}

func TestUnchangedDescriptionEditIsIgnored(t *testing.T) {
	w := newRig(t)
	const body = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] nothing else\n"
	const more = "Please add a second line to a.txt.\n\n- [ ] line two\n- [ ] a THIRD line\n"
	issue := w.Issue(body)
	pull := w.ownPull(issue)
	other := w.Opened("one")
	edits := func(on int, who, text string) func() error {
		return func() error { return w.GitHub.EditBody(testRepo, on, who, text) }
	}
	const same = "- the description's content did not change"
	n := issue.Number
	w.play(issue, []scene{
		{"a re-save", edits(n, "ada", body), same},
		{"a touched time stamp", func() error { return w.GitHub.TouchIssue(testRepo, n, "ada") }, ""},
		{"another title", func() error { return w.GitHub.EditTitle(testRepo, n, "ada", "Two lines") }, "- the description was not edited"},
		{"a reader's change", edits(n, "mallory", body+"- [ ] for me"), "- mallory has read permission"},
		{"the writer edits it back", edits(n, "ada", body), "- the description was edited back"},
		{"a reader's re-save", edits(n, "mallory", body+"\n"), same},
		{"a change", edits(n, "ada", more), "+ the description's content changed"},
		{"a reader edits it back", edits(n, "mallory", body), "- mallory has read permission"},
		{"a further change", edits(n, "ada", more+"- [ ] a FOURTH line\n"), "+ the description's content changed"},
		{"the pull request's first description", edits(pull, "ada", "Work."), "+ the description's content changed"},
		{"a re-save of the pull request", edits(pull, "ada", "Work."), same},
		{"an issue without Pawl's work", edits(other.Number, "ada", "two"), ""},
	})
	for _, f := range w.state(issue).Feedback {
		if f.Withdrawn != "" {
			t.Errorf("%q by %s was withdrawn: %s", f.Raw, f.By.Login, f.Withdrawn)
		}
	}
	if len(w.Log(other)) > 0 {
		t.Error("an issue that Pawl does not work on has a log")
	}
}

// A withdrawn request must disappear from what users see. No other ignored remark wakes a thread.
func TestRestoredDescriptionWakesItsThread(t *testing.T) {
	w := newRig(t)
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
		{"a restoration", body, true},
		{"a re-save", body + "\n", false},
	} {
		w.Must(w.GitHub.EditBody(testRepo, issue.Number, "ada", c.text))
		w.Handle()
		if got := due(); got != c.wakes {
			t.Errorf("after %s the thread is due: %t, want %t", c.name, got, c.wakes)
		}
	}
}

func TestLabelsReviewsAndNewThreadsAskForWork(t *testing.T) {
	w := newRig(t)
	issue := w.Issue("Please.")
	pull := w.ownPull(issue)
	n := issue.Number
	label := func(who, name string) func() error {
		return func() error { return w.GitHub.AddLabel(testRepo, n, who, name) }
	}
	review := func(who, state, text string) func() error {
		return func() error { _, err := w.GitHub.Review(testRepo, pull, who, state, text); return err }
	}
	w.play(issue, []scene{
		{"another label", label("ada", "bug"), `- label "bug" is not "pawl"`},
		{"the label by a reader", label("mallory", "pawl"), "- mallory has read permission"},
		{"the label is removed", func() error { return w.GitHub.RemoveLabel(testRepo, n, "ada", "pawl") }, ""},
		{"the label with a backend", label("ada", "pawl:mine"), `+ label "pawl:mine" was added`},
		{"an approval", review("ada", "APPROVED", "Very nice."), "- an approval asks for no work"},
		{"a request for changes", review("ada", "CHANGES_REQUESTED", "Use REVIEWED words."), "+ a review requests changes"},
		{"a request for changes without a text", review("ada", "CHANGES_REQUESTED", ""), "+ a review requests changes"},
		{"a request for changes by a reader", review("mallory", "CHANGES_REQUESTED", "No."), "- mallory has read permission"},
		{"a review with a remark", review("ada", "COMMENTED", "What about b.txt?"), "+ a review remark on Pawl's pull request"},
		{"a command in an approval", review("ada", "APPROVED", "/pawl solve the rest"), "+ command solve"},
	})
	if s := w.state(issue); s.Pinned != "mine" {
		t.Errorf("the thread is pinned to %q, want the label's backend", s.Pinned)
	}
	_, err := w.GitHub.ReviewComment(t.Context(), testRepo, pull, "ada", "a.txt", 2, "LINED remark")
	w.Must(err)
	w.Handle()
	if f := w.state(issue).Feedback; !strings.Contains(f[len(f)-1].Text, "LINED remark") {
		t.Errorf("the last feedback is %+v, want the remark on a line", f[len(f)-1])
	}
	for how, opened := range map[string]thread.ID{
		"mention": w.Opened("@pawl please add a line."),
		"command": w.Opened("See a.txt.\n\n/pawl solve"),
		"label":   w.Opened("Add a line.", "pawl"),
	} {
		if got := handlerstest.Verdicts(w.state(opened)); len(got) != 1 || !strings.HasPrefix(got[0], "+ ") {
			t.Errorf("an issue that asks by %s is judged %q, want it accepted once", how, got)
		}
	}
}
