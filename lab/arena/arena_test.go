package arena

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// In the arena, bots play against one server for two days of virtual time, each in its own repository. A bot sees only
// GitHub, and repeats its act until Pawl starts no more attempts. The number of Pawl's attempts and writes in that
// repository must not exceed the bot's bound. `make arena` plays all bots and prints a table.

var whole = flag.Bool("arena", false, "play all bots of the arena, and print the results")

type bot struct {
	name, does string
	files      map[string]string // additional files of its repository
	agent      string            // the agent's shell script; empty for newAgent
	begins     func(*seat)       // starts the work; if nil, a user asks for an issue, and Pawl opens a pull request
	acts       func(*seat)       // does the bot's act once; called repeatedly
	every      time.Duration     // the time between two acts; if 0, the bot acts as soon as Pawl is idle
	bound      bound
}

// bound limits Pawl's reaction to a bot in two days.
type bound struct {
	attempts int // attempts in the bot's repository, including the first, which a user asked for
	threads  int // threads with attempts; 0 means 1
	writes   int // Pawl's writes to GitHub; 0 means shownBy for each attempt, and moreWrites
	why      string
}

// shownBy limits the writes that report one attempt. moreWrites limits Pawl's other writes.
const shownBy, moreWrites = 15, 10

// seat is a bot in play, with its state.
type seat struct {
	*arena
	*bot
	repo        string
	issue, pull int
	round       int // the number of the current act, from 1
	sent        int // the number of GitHub events that its acts caused
	memory      map[string]int64

	next         time.Time // the time of its next act
	quiet        int       // the number of acts in a row that caused no attempt
	last, writes int       // the number of attempts, and of Pawl's writes, so far
	today        [2]int    // the number of attempts on each day
}

// arena is a server with the bots that play against it.
type arena struct {
	*stage
	seats []*seat
}

// The bots' accounts. Only helper is an allowed bot.
const helper, other = "helper[bot]", "other[bot]"

// tireless is the number of consecutive acts without an attempt after which a bot stops
// for the day.
const tireless = 3

// settings raise the server's and the account's limits, because the bots share a server:
// only limits of a bot's own threads and repository may stop it.
const settings = `workers: 4
policy:
  allowed_bots: [77]
  caps: {per_server_per_day: 10000, per_account_per_day: 10000, per_repository_per_day: %d}
  restarts: {max_per_thread_per_day: %d}
  learning: {mode: fixed} # each script is written for its backend
`

// dispatch is the agent of all repositories. It runs the script of the thread's repository,
// which may post to GitHub as a user.
const dispatch = `#!/bin/sh
CTRL='%[3]s'
echo "$PAWL_THREAD" >> "$CTRL/attempts"
cat > /dev/null
owner=${PAWL_THREAD%%%%/*} issue=${PAWL_THREAD##*#}
n=$(grep -c "^$owner/" "$CTRL/attempts")
post() { curl -sSf -o /dev/null -H "Authorization: Bearer %[2]s" -d "$2" "%[1]s/repos/$owner/widgets/$1"; }
. "$CTRL/$owner.sh"
`

// newAgent adds a new file each time, so that no attempt resembles the previous one.
const newAgent = `head -c 90 /dev/urandom | base64 > "file$n.txt"; echo "I added file$n.txt."`

// newArena starts a server for these bots and starts the bots' work. perRepository and perThread are the daily limits of
// attempts.
func newArena(t *testing.T, perRepository, perThread int, bots []bot) *arena {
	t.Helper()
	a := &arena{stage: newStage(t, fmt.Sprintf(settings, perRepository, perThread))}
	token, err := a.World.UserToken(writer)
	a.must(err)
	a.agent(fmt.Sprintf(dispatch, strings.TrimSuffix(a.World.APIURL(), "/"), token, a.ctrl()))
	a.must(a.World.AddBot(helper, 77))
	a.must(a.World.AddBot(other, 78))
	a.World.AddOtherApp("ci", 4001)
	a.World.AddOtherApp("lint", 4002)
	a.World.AddOtherApp("github-actions", 15368)
	a.begin()
	for i := range bots {
		s := &seat{arena: a, bot: &bots[i], repo: bots[i].name + "/widgets", memory: map[string]int64{}, next: a.ahead.now()}
		files := map[string]string{"README.md": "# widgets\n", "a.txt": "one\n", config.RepoFile: "backends: [mine]\n"}
		for path, text := range s.files {
			files[path] = text
		}
		a.must(a.World.AddRepo(t.Context(), s.repo, files))
		a.must(a.World.SetRole(s.repo, writer, "write"))
		a.must(a.World.SetRole(s.repo, reader, "read"))
		a.must(a.World.Install(s.repo))
		agent := s.bot.agent
		if agent == "" {
			agent = newAgent
		}
		a.must(os.WriteFile(filepath.Join(a.ctrl(), s.name+".sh"), []byte(agent), 0o600))
		a.seats = append(a.seats, s)
	}
	for _, s := range a.seats {
		if s.begins == nil {
			s.asks("A second line", "Please add a second line to a.txt.")
			continue
		}
		s.begins(s)
	}
	a.World.ResetCalls()
	return a
}

// asks opens an issue and comments /pawl solve as a user.
func (s *seat) asks(title, body string) {
	var err error
	s.issue, err = s.World.OpenIssue(s.repo, writer, title, body)
	s.must(err)
	_, err = s.World.Comment(s.repo, s.issue, writer, "/pawl solve")
	s.must(err)
}

// play lets all bots act for two days.
func (a *arena) play() {
	a.t.Helper()
	for day := range 2 {
		for _, s := range a.seats {
			for s.quiet = 0; s.every > 0 && !s.next.After(a.ahead.now()); s.next = s.next.Add(s.every) {
			}
		}
		for a.awaitIdle(day); a.act() || a.wait(); a.awaitIdle(day) {
		}
		a.reach(a.ahead.now().Add(policy.Day + time.Hour))
	}
}

// awaitIdle waits until the server is idle at the current time, and counts its attempts and writes.
func (a *arena) awaitIdle(day int) {
	a.t.Helper()
	before := -1
	a.await("the server to be idle", func() bool {
		a.must(a.World.WaitDelivered(a.t.Context()))
		st, err := a.store.Stats(a.t.Context())
		a.must(err)
		var leased int // also counts expired leases
		a.must(a.store.DB().QueryRowContext(a.t.Context(), "SELECT count(*) FROM threads WHERE lease_until > 0").Scan(&leased))
		sent := strings.Count(a.attempts(), "\n") + len(a.World.Requests())
		idle := sent == before && st.Deliveries[thread.Received]+st.Queued+leased == 0
		before = sent
		return idle
	})
	made := a.attempts()
	for _, s := range a.seats {
		for _, r := range a.World.Requests() {
			if r.Method != "GET" && strings.HasPrefix(r.Caller, "installation:") && strings.HasPrefix(r.Path, "/repos/"+s.repo+"/") {
				s.writes++
			}
		}
		n := strings.Count("\n"+made, "\n"+s.repo+"#")
		if n > s.last {
			s.quiet = 0
		}
		s.today[day] += n - s.last
		s.last = n
		for _, p := range a.World.Pulls(s.repo) {
			if p.Author == "pawl[bot]" && s.pull == 0 {
				s.pull = p.Number
			}
		}
	}
	a.World.ResetCalls()
}

// act lets every due bot act, and reports whether a bot acted. While a thread in a bot's repository waits for a time, the
// bot waits, too.
func (a *arena) act() (acted bool) {
	waits := a.waits()
	for _, s := range a.seats {
		if s.doneToday() || s.next.After(a.ahead.now()) || waits[s.repo].After(time.Time{}) {
			continue
		}
		if !acted { // two rounds of acts are at least a second apart
			a.reach(a.ahead.now().Add(time.Second))
		}
		acted = true
		s.round++
		s.quiet++
		s.next = s.next.Add(s.every)
		s.acts(s)
	}
	return acted
}

// doneToday reports whether the bot is done for today: it has no acts, its acts have no effect, or Pawl exceeded the bound.
func (s *seat) doneToday() bool {
	return s.acts == nil || s.quiet >= tireless || s.last > s.bound.attempts
}

// waits returns the earliest time that a thread waits for, by repository. It omits threads
// that wait for the next day because of a daily limit.
func (a *arena) waits() map[string]time.Time {
	a.t.Helper()
	rows, err := a.store.Threads(a.t.Context(), 10_000)
	a.must(err)
	all := map[string]time.Time{}
	for _, row := range rows {
		if row.WakeAt.IsZero() {
			continue
		}
		if a.waitsForTheDay(row.Thread) {
			continue
		}
		if at, known := all[row.Thread.Repo()]; !known || row.WakeAt.Before(at) {
			all[row.Thread.Repo()] = row.WakeAt
		}
	}
	return all
}

// wait moves the clocks to the next time at which a thread or a bot is due. It reports whether there is such a time.
func (a *arena) wait() bool {
	a.t.Helper()
	var next time.Time
	sooner := func(at time.Time) {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	waits := a.waits()
	for _, at := range waits {
		sooner(at)
	}
	for _, s := range a.seats {
		if !s.doneToday() && waits[s.repo].IsZero() {
			sooner(s.next)
		}
	}
	if next.IsZero() {
		return false
	}
	a.reach(next)
	return true
}

// threads returns the threads with attempts in the bot's repository.
func (s *seat) threads() (list []string) {
	for line := range strings.Lines(s.attempts()) {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, s.repo+"#") && !slices.Contains(list, line) {
			list = append(list, line)
		}
	}
	return list
}

// judged counts the events that Pawl recorded in the bot's repository, except Pawl's own events and the first request.
func (s *seat) judged() (n int) {
	rows, err := s.store.Threads(s.t.Context(), 10_000)
	s.must(err)
	for _, row := range rows {
		if row.Thread.Repo() != s.repo {
			continue
		}
		events, err := s.store.Events(s.t.Context(), row.Thread, 0)
		s.must(err)
		for _, e := range events {
			noted := slices.Contains([]thread.Kind{thread.KindFeedback, thread.KindIgnored, thread.KindControl, thread.KindQuestion, thread.KindThread}, e.Kind)
			if noted && !strings.Contains(string(e.Data), `"own":true`) {
				n++
			}
		}
	}
	return n - 1
}

// check compares each bot's results with its bound, and returns the lines of a table.
func (a *arena) check() (table []string) {
	a.t.Helper()
	for _, s := range a.seats {
		b, threads, judged := s.bound, len(s.threads()), s.judged()
		b.threads, b.writes = max(b.threads, 1), cmp.Or(b.writes, shownBy*b.attempts+moreWrites)
		met := s.last <= b.attempts && threads <= b.threads && s.writes <= b.writes
		if !met {
			a.t.Errorf("%s (%s): %d attempts on %d threads, %d writes; the bound is %d attempts on %d threads, %d writes: %s",
				s.name, s.does, s.last, threads, s.writes, b.attempts, b.threads, b.writes, b.why)
		}
		if met && (s.acts != nil && s.sent < tireless || judged < 1 && s.last < 2) {
			a.t.Errorf("%s acted %d times and Pawl recorded %d events; the bot tests nothing", s.name, s.sent, judged)
		}
		table = append(table, fmt.Sprintf("| %s: %s | %d | %d + %d | %d | %s | %d of %d | %s | %s |",
			s.name, s.does, s.sent, s.today[0], s.today[1], b.attempts, b.why, s.writes, b.writes, s.ended(), map[bool]string{true: "yes", false: "NO"}[met]))
	}
	return table
}

// ended returns the rule of the last decision on the first thread.
func (s *seat) ended() policy.Rule {
	if d := s.state(s.thread(s.issue)).Decision; d != nil {
		return d.Rule
	}
	return "-"
}

func (s *seat) thread(n int) thread.ID {
	owner, name, _ := strings.Cut(s.repo, "/")
	return thread.ID{Owner: owner, Name: name, Number: n}
}

// The acts of bots. Each act causes at least one event on GitHub.

func (s *seat) did(err error) {
	s.t.Helper()
	s.must(err)
	s.sent++
}

// comments writes a comment and returns the comment's id.
func (s *seat) comments(on int, who, text string) int64 {
	s.t.Helper()
	id, err := s.World.Comment(s.repo, on, who, text)
	s.did(err)
	return id
}

// head returns the head commit of Pawl's pull request.
func (s *seat) head() string {
	for _, p := range s.World.Pulls(s.repo) {
		if p.Number == s.pull {
			return p.Pull.HeadSHA
		}
	}
	return ""
}

// fails reports a failed check on the pull request's head as an App.
func (s *seat) fails(app, name, text string, annotations ...fakegithub.CheckAnnotation) {
	s.t.Helper()
	s.reports(app, fakegithub.CheckResult{Name: name, Conclusion: "failure", Title: name, Summary: text, Annotations: annotations})
}

func (s *seat) reports(app string, c fakegithub.CheckResult) {
	s.t.Helper()
	if c.SHA = s.head(); c.Summary == "" {
		c.Title = "" // as GitHub Actions does
	}
	_, err := s.World.CompleteCheckRun(s.repo, app, c)
	s.did(err)
}

// button returns the check run pawl on the head commit, and whether it has the button.
func (s *seat) button(id string) (run fakegithub.CheckRun, has bool) {
	for _, c := range s.World.CheckRuns(s.repo) {
		if c.App == "pawl" && c.Name == "pawl" && c.SHA == s.head() {
			run = c
		}
	}
	return run, slices.ContainsFunc(run.Actions, func(a fakegithub.CheckAction) bool { return a.Identifier == id })
}

// pawls returns Pawl's current comments on a thread.
func (s *seat) pawls(n int) (all []fakegithub.Comment) {
	for _, c := range s.World.Comments(s.repo, n) {
		if c.Author == "pawl[bot]" {
			all = append(all, c)
		}
	}
	return all
}

// words returns a request in words that the bot has not used before.
func (s *seat) words() string { return sentence(s.round) }

func sentence(n int) string {
	of := func(words string, n int) string { list := strings.Fields(words); return list[n%len(list)] }
	return fmt.Sprintf("%s the %s %s %s.", of("Rename Simplify Document Test Split Inline Format Sort Cache Remove Reword Guard", n),
		of("old second public nested shared longest hidden first generated", n), of("parser wheel lexer catch spring queue index license header", n/2+n),
		of("carefully today everywhere twice without-fail at-last", n/3+n))
}
