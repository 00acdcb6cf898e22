package main

import (
	"database/sql"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
)

// plainAgent keeps its prompt as prompt.<n>, adds a line and says what it did.
const plainAgent = `n=$(wc -l < "$CTRL/calls" | tr -d ' ')
cat > "$CTRL/prompt.$n"
echo "line $n" >> a.txt
echo "a.txt has the line number $n now"
`

// gatedAgent does the same, and waits before it ends while there is a gate.
const gatedAgent = plainAgent + `if [ -p "$CTRL/gate" ]; then read opened < "$CTRL/gate"; fi
`

// gate makes gated agents wait until it is opened.
func (r *rig) gate() {
	r.t.Helper()
	r.must(syscall.Mkfifo(filepath.Join(r.ctrl(), "gate"), 0o600))
}

// open lets the agent that waits at the gate go on, and takes the gate away.
func (r *rig) open() {
	r.t.Helper()
	path := filepath.Join(r.ctrl(), "gate")
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	r.must(err)
	defer f.Close()
	r.must(os.Remove(path))
	_, err = f.WriteString("opened\n")
	r.must(err)

}

// prompt is what the n-th call of the agent was asked.
func (r *rig) prompt(n string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.ctrl(), "prompt."+n))
	r.must(err)
	return string(b)
}

// read gives the server's database, open for reading beside it, to f.
func (r *rig) read(f func(*store.Store)) {
	r.t.Helper()
	db, err := store.OpenReadOnly(r.t.Context(), "sqlite:"+filepath.Join(r.dir, "pawl.db"), store.Options{})
	r.must(err)
	defer db.Close()
	f(db)
}

func (r *rig) stats() (s store.Stats) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		s, err = db.Stats(r.t.Context())
		r.must(err)
	})
	return s
}

// database opens the server's file beside it, with patience for its writes.
func (r *rig) database() *sql.DB {
	r.t.Helper()
	db, err := sql.Open("sqlite", "file:"+filepath.Join(r.dir, "pawl.db")+"?_pragma=busy_timeout(30000)")
	r.must(err)
	r.t.Cleanup(func() { db.Close() })
	return db
}

func (r *rig) deliveries() (list []solver.Delivery) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		list, err = db.Deliveries(r.t.Context(), 1000)
		r.must(err)
	})
	return list
}

func (r *rig) deliveryOf(guid string) (d solver.Delivery) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		var err error
		d, err = db.Delivery(r.t.Context(), guid)
		r.must(err)
	})
	return d
}

// state is the fold of a thread's log.
func (r *rig) state(n int) (s solver.State) {
	r.t.Helper()
	r.read(func(db *store.Store) {
		events, err := db.Events(r.t.Context(), solver.Thread{Owner: "acme", Name: "widgets", Number: n}, 0)
		r.must(err)
		s, err = solver.Fold(events)
		r.must(err)
	})
	return s
}

// handled waits until everything that happened so far is delivered and judged.
func (r *rig) handled() {
	r.t.Helper()
	r.await("the deliveries to be handled", func() bool {
		r.must(r.world.WaitDelivered(r.t.Context()))
		return r.stats().Deliveries[solver.Received] == 0
	})
}

// settle waits until the server has nothing left to do: what its own acts made
// GitHub deliver is handled, too.
func (r *rig) settle() {
	r.t.Helper()
	before := -1
	r.await("the server to rest", func() bool {
		r.must(r.world.WaitDelivered(r.t.Context()))
		s := r.stats()
		sent := len(r.world.Deliveries())
		rests := sent == before && s.Deliveries[solver.Received] == 0 && s.Queued == 0 && s.Running == 0
		before = sent
		return rests && !r.gathers()
	})
}

// gathers reports whether a thread awaits more of the same feedback.
func (r *rig) gathers() bool {
	return slices.ContainsFunc(r.status().Threads, func(t threadStatus) bool { return t.State == "waiting" && t.Rule == "gather" })
}

// solved solves an issue with one attempt and returns its number and that of its
// pull request.
func (r *rig) solved() (issue, pull int) {
	r.t.Helper()
	issue = r.solve("A second line", "Please add a second line to a.txt.")
	if s := r.over(threadName(issue)); s.State != "done" {
		r.t.Fatalf("%s is %s (%s %v), want done", s.Thread, s.State, s.Rule, s.Reasons)
	}
	r.settle()
	for _, p := range r.world.Pulls(rigRepo) {
		pull = p.Number
	}
	return issue, pull
}

// judged are the remarks of others than Pawl itself on a thread, in order:
// "+ reason" for those acted on, "- reason" for those ignored.
func (r *rig) judged(n int) []string {
	r.t.Helper()
	var out []string
	s := r.state(n)
	i, j := 0, 0
	for i < len(s.Feedback) || j < len(s.Ignored) {
		if j == len(s.Ignored) || i < len(s.Feedback) && s.Feedback[i].Seq < s.Ignored[j].Seq {
			if why := s.Feedback[i].Withdrawn; why != "" {
				out = append(out, "- "+why)
			} else {
				out = append(out, "+ "+s.Feedback[i].Reason)
			}
			i++
			continue
		}
		if s.Ignored[j].By.Login != "pawl[bot]" {
			out = append(out, "- "+s.Ignored[j].Reason)
		}
		j++
	}
	return out
}

// scene is one thing that happens on a thread and what is to come of it: want
// is "" for nothing worth a line in the log, "+ reason" for one further attempt,
// "- reason" for none. Reasons may be parts.
type happens struct {
	name string
	do   func() error
	want string
}

// play lets things happen one after the other on a thread.
func (r *rig) play(thread int, scenes []happens) {
	r.t.Helper()
	for _, sc := range scenes {
		calls, before := r.calls(), len(r.judged(thread))
		if err := sc.do(); err != nil {
			r.t.Fatalf("%s: %v", sc.name, err)
		}
		r.settle()
		news := r.judged(thread)[before:]
		got := strings.Join(news, "; ")
		extra := 0
		if strings.HasPrefix(sc.want, "+") {
			extra = 1
		}
		switch {
		case sc.want == "" && got != "", sc.want != "" && (len(news) != 1 || got[:2] != sc.want[:2] || !strings.Contains(got, sc.want[2:])):
			r.t.Errorf("%s: judged %q, want %q", sc.name, got, sc.want)
		case r.calls()-calls != extra:
			r.t.Errorf("%s: %d calls of the agent, want %d", sc.name, r.calls()-calls, extra)
		}
	}
}

// eyes counts Pawl's 👀 on a comment.
func (r *rig) eyes(thread int, id int64) int {
	n := 0
	for _, c := range r.world.Comments(rigRepo, thread) {
		if c.ID == id {
			n += strings.Count(strings.Join(c.Reactions, " "), "eyes by pawl[bot]")
		}
	}
	return n
}

func TestOnlyPeopleWhoMayWriteAreListenedTo(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.config += "policy: {allowed_bots: [77]}\n"
	r.agent(plainAgent, "")
	r.must(r.world.AddUser("stranger", 1003, nil))
	r.must(r.world.AddUser("triager", 1004, map[string]string{rigRepo: "triage"}))
	r.must(r.world.AddUser("keeper", 1005, map[string]string{rigRepo: "maintain"}))
	r.must(r.world.AddUser("boss", 1006, map[string]string{rigRepo: "admin"}))
	r.must(r.world.AddBot("dependabot[bot]", 76))
	r.must(r.world.AddBot("helper[bot]", 77))
	r.start()
	n, pull := r.solved()
	says := func(on int, who, text string) func() error {
		return func() error { _, err := r.world.Comment(rigRepo, on, who, text); return err }
	}
	r.play(n, []happens{
		{"a reader commands", says(n, reader, "/pawl solve"), "- mallory has read permission; write is needed"},
		{"a reader mentions", says(n, reader, "@pawl please"), "- mallory has read permission; write is needed"},
		{"a reader remarks on Pawl's pull request", says(pull, reader, "Add tests."), "- mallory has read permission; write is needed"},
		{"a stranger commands", says(n, "stranger", "/pawl solve"), "- stranger has none permission; write is needed"},
		{"a triager commands", says(n, "triager", "/pawl solve"), "- triager has triage permission; write is needed"},
		{"a bot commands", says(n, "dependabot[bot]", "/pawl solve"), "- dependabot[bot] is a bot that is not in allowed_bots"},
		{"a writer remarks on the issue", says(n, writer, "Thank you."), "- it holds no command"},
		{"a listed bot commands", says(n, "helper[bot]", "/pawl solve"), "+ command solve"},
		{"a maintainer commands", says(n, "keeper", "/pawl solve"), "+ command solve"},
		{"an administrator commands", says(n, "boss", "/pawl retry"), "+ command retry"},
		{"a writer mentions", says(n, writer, "@pawl please add a line"), "+ command solve"},
		{"a writer remarks on Pawl's pull request", says(pull, writer, "Add tests."), "+ a new comment on Pawl's pull request"},
		{"a writer who lost the right commands", func() error {
			if err := r.world.SetRole(rigRepo, writer, "read"); err != nil {
				return err
			}
			return says(n, writer, "/pawl solve")()
		}, "- ada has read permission"},
	})
}

func TestNobodyIsListenedToBeforeThePermissionIsKnown(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.agent(plainAgent, "")
	r.start()
	r.world.Inject(fakegithub.Fault{Route: "GET /repos/*/*/collaborators/*/permission", Times: -1, Status: 500})
	n := r.solve("A second line", "Please.")
	asked := func() int { return r.world.Calls()["GET /repos/{owner}/{repo}/collaborators/{login}/permission"] }
	r.await("the question for the permission", func() bool { return asked() > 0 })
	if s := r.state(n); r.calls() != 0 || len(s.Feedback) != 0 {
		t.Errorf("%d calls of the agent, %d remarks accepted, want none while GitHub does not answer", r.calls(), len(s.Feedback))
	}
	r.world.ClearFaults()
	r.over(threadName(n))
	if r.calls() != 1 {
		t.Errorf("%d calls of the agent once GitHub answered, want 1", r.calls())
	}
}
