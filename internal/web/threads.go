package web

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/commands"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/solver"
	"github.com/pawlbot/pawl/solver/thread"
)

// perPage limits the threads of a page; maxQuery limits a search in characters.
const (
	perPage  = 25
	maxQuery = 200
	// maxListed limits the threads of a search, last changed first.
	maxListed = 100_000
)

type threadsData struct {
	frame
	Counts       []count // for operators, like Trouble
	Trouble      []entry // needs an operator's attention
	Query        search
	Repos        []string
	States       []checkrun.State
	Threads      []threadLine
	First, Last  int
	Total        int    // 0 if not counted
	Newer, Older string // queries of the pages, or empty
	Any          bool   // the user may see threads, whether or not any matched
	Paused       string // who paused the searched repository, or empty
}

type search struct {
	Text, Repo string
	State      checkrun.State
	Page       int
}

func readSearch(q url.Values) search {
	s := search{Text: strings.TrimSpace(render.Line(q.Get("q"), maxQuery)), Repo: render.Line(q.Get("repo"), maxQuery), Page: 1}
	if state := checkrun.State(q.Get("state")); slices.Contains(states(), state) {
		s.State = state
	}
	if n, err := strconv.Atoi(q.Get("page")); err == nil && n > 1 && n < 1_000_000 {
		s.Page = n
	}
	return s
}

func (s search) page(n int) string {
	q := url.Values{}
	for name, v := range map[string]string{"q": s.Text, "repo": s.Repo, "state": string(s.State)} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if n > 1 {
		q.Set("page", strconv.Itoa(n))
	}
	return "?" + q.Encode()
}

// states lists the states that a search can select.
func states() []checkrun.State {
	return []checkrun.State{
		checkrun.Running,
		checkrun.Waiting,
		checkrun.Stopped,
		checkrun.Done,
		checkrun.Answered,
		checkrun.Planned,
		checkrun.Failed,
		checkrun.ConfigError,
	}
}

// indexed caches a thread's data that a search needs. It is stale once the thread's log has grown past seq.
type indexed struct {
	seq   int64
	title string
	state checkrun.State
}

func (p *pages) lookUp(ctx context.Context, row thread.ThreadRow) (indexed, error) {
	if known, ok := p.index.Get(row.Thread); ok && known.(indexed).seq == row.Seq {
		return known.(indexed), nil
	}
	events, err := p.Store.Events(ctx, row.Thread, 0)
	if err != nil {
		return indexed{}, err
	}
	known := indexed{seq: row.Seq}
	if s, err := thread.Fold(events); err == nil { // otherwise the thread's line shows the error
		known.title, known.state = render.Line(s.Snapshot.Title, maxTitle), solver.State(s)
	}
	p.index.Add(row.Thread, known)
	return known, nil
}

func (p *pages) matches(ctx context.Context, s search, row thread.ThreadRow) (bool, error) {
	if s.Repo != "" && !strings.EqualFold(s.Repo, row.Thread.Repo()) {
		return false, nil
	}
	if s.Text == "" && s.State == "" {
		return true, nil
	}
	words := strings.ToLower(s.Text)
	named := words == "" || strings.Contains(strings.ToLower(row.Thread.String()), words)
	if named && s.State == "" {
		return true, nil
	}
	known, err := p.lookUp(ctx, row)
	return (named || strings.Contains(strings.ToLower(known.title), words)) && (s.State == "" || known.state == s.State), err
}

// findThreads searches threads, last changed first. It stops when the page is full, unless it counts all threads.
func (p *pages) findThreads(ctx context.Context, r *http.Request) (any, error) {
	by := who(r)
	data := threadsData{frame: p.frame(r, "Threads", "./"), Query: readSearch(r.URL.Query()), States: states()}
	found := finding{p: p, by: by, query: data.Query, may: map[string]bool{}}
	rows, err := p.Store.Threads(ctx, maxListed)
	if err != nil {
		return data, err
	}
	if err := found.lookThrough(ctx, rows); err != nil {
		return data, err
	}
	data.Repos = slices.Sorted(slices.Values(found.repos))
	data.Any = found.any
	data.setPages(found)
	if err := p.addLines(ctx, &data, found.shown); err != nil {
		return data, err
	}
	if data.Paused, err = p.pausedBy(ctx, data); err != nil {
		return data, err
	}
	if !by.Operator {
		return data, nil
	}
	return data, p.addTrouble(ctx, &data)
}

// finding is the state of one search.
type finding struct {
	p     *pages
	by    User
	query search
	may   map[string]bool // by repository
	repos []string        // readable repositories

	any   bool // there are readable threads
	shown []thread.ThreadRow
	total int  // threads found
	cut   bool // the search stopped early, so total is too low
}

func (f *finding) skip() int { return (f.query.Page - 1) * perPage }

func (f *finding) lookThrough(ctx context.Context, rows []thread.ThreadRow) error {
	for _, row := range rows {
		may, err := f.mayRead(ctx, row.Thread.Repo())
		if err != nil {
			return err
		}
		if !may {
			continue
		}
		f.any = true
		if len(f.shown) == perPage && !f.countsAll() {
			f.cut = true
			return nil
		}
		found, err := f.p.matches(ctx, f.query, row)
		if err != nil {
			return err
		}
		if found {
			f.add(row)
		}
	}
	return nil
}

// mayRead asks once per repository.
func (f *finding) mayRead(ctx context.Context, repo string) (bool, error) {
	if may, asked := f.may[repo]; asked {
		return may, nil
	}
	may, err := f.p.mayRead(ctx, f.by, repo)
	if err != nil {
		return false, err
	}
	f.may[repo] = may
	if may {
		f.repos = append(f.repos, render.Line(repo, maxName))
	}
	return may, nil
}

// countsAll reports whether the search counts beyond a full page. Asking GitHub or reading logs for each thread would
// be slow.
func (f *finding) countsAll() bool {
	if !f.by.Operator {
		return false
	}
	return f.query.Text == "" && f.query.State == ""
}

func (f *finding) add(row thread.ThreadRow) {
	f.total++
	if f.total > f.skip() && len(f.shown) < perPage {
		f.shown = append(f.shown, row)
	}
}

func (d *threadsData) setPages(f finding) {
	d.First, d.Last = f.skip()+1, f.skip()+len(f.shown)
	if !f.cut {
		d.Total = f.total
	}
	if f.cut || f.total > d.Last {
		d.Older = d.Query.page(d.Query.Page + 1)
	}
	if d.Query.Page > 1 {
		d.Newer = d.Query.page(d.Query.Page - 1)
	}
}

func (p *pages) pausedBy(ctx context.Context, data threadsData) (string, error) {
	owner, name, ok := strings.Cut(data.Query.Repo, "/")
	if !ok || !slices.Contains(data.Repos, data.Query.Repo) {
		return "", nil
	}
	paused, err := commands.PausedBy(ctx, p.Store, owner, name)
	if err != nil || paused == nil {
		return "", err
	}
	return render.Line(paused.Pauses(data.Query.Repo), maxReason), nil
}

func (p *pages) addTrouble(ctx context.Context, data *threadsData) error {
	stats, err := p.Store.Stats(ctx)
	if err != nil {
		return err
	}
	breakers, err := p.Store.Breakers(ctx)
	if err != nil {
		return err
	}
	data.Counts = counts(stats)[:3]
	for _, b := range p.breakerLines(breakers, data.Now) {
		if b.Class == "failed" {
			data.Trouble = append(data.Trouble, entry{Name: "Account " + b.Name, Href: "accounts", Text: b.Text, Class: b.Class})
		}
	}
	if n := stats.Deliveries[thread.Failed] + stats.Deliveries[thread.Unparsable] + stats.Deliveries[thread.GivenUp]; n > 0 {
		text := fmt.Sprintf("%s could not be handled; Pawl gave up on %s of them", number(n), number(stats.Deliveries[thread.GivenUp]))
		data.Trouble = append(data.Trouble, entry{Name: "Deliveries", Href: "accounts", Text: text, Class: "failed"})
	}
	return nil
}

func (p *pages) addLines(ctx context.Context, data *threadsData, rows []thread.ThreadRow) error {
	for _, row := range rows {
		f, err := p.View(ctx, row.Thread)
		if ctx.Err() != nil {
			return err
		}
		data.Threads = append(data.Threads, listed(row, f, err, data.Now))
	}
	return nil
}

type summary struct {
	Name, Subject, Heading string
	State, Class           string
	// Step reports whether a node is running a step of the thread.
	Step    bool
	Rule    string
	Reasons []string
	Broken  string // why the thread cannot be shown
}

// summarise describes a thread with its first reasons, or why it cannot be shown.
func summarise(row thread.ThreadRow, f checkrun.View, err error, now time.Time, most int) summary {
	s := summary{Name: render.Line(row.Thread.String(), maxName), Step: row.Running}
	if err != nil {
		s.State, s.Class, s.Broken = "unreadable", "failed", render.Line(err.Error(), maxReason)
		return s
	}
	s.Subject, s.State, s.Class = render.Line(f.Title, maxTitle), render.Spaced(f.State), cmp.Or(classes[f.State], "other")
	s.Heading = render.Line(checkrun.Checks(f)[0].Title, 200) // the check run's title gives the state
	s.Rule = render.Spaced(render.Line(string(f.Rule), maxName))
	s.Reasons = shortened(f.Reasons.Write(func(t time.Time) string { return render.Instant(now, t) }), most)
	return s
}

type threadLine struct {
	summary
	Href           string
	Attempts       int // of all runs
	Until, Changed time.Time
}

func listed(row thread.ThreadRow, f checkrun.View, err error, now time.Time) threadLine {
	t := threadLine{summary: summarise(row, f, err, now, 1), Href: href(row.Thread), Changed: row.UpdatedAt}
	if err != nil {
		return t
	}
	t.Heading = strings.TrimPrefix(strings.TrimPrefix(t.Heading, "Waiting: "), "Stopped: ")
	t.Attempts = len(f.Attempts)
	if f.State == checkrun.Waiting {
		t.Until = f.Until
	}
	return t
}

// shortened returns the first reasons, one line each, and how many it omitted.
func shortened(reasons []string, most int) []string {
	var out []string
	for i, r := range reasons {
		if i == most {
			return append(out, "and "+plural(len(reasons)-most, "more reason"))
		}
		out = append(out, render.Line(r, maxReason))
	}
	return out
}

// href returns a thread's address relative to the first page.
func href(t thread.ID) string {
	return "threads/" + url.PathEscape(t.Owner) + "/" + url.PathEscape(t.Name) + "/" + strconv.Itoa(t.Number)
}

// count is a number at the top of a page. Bad marks numbers that need an operator's attention.
type count struct {
	Name, Value, Note string
	Bad               bool
}

func counts(s store.Stats) []count {
	of := func(name string, n int, note string) count {
		return count{Name: name, Value: number(n), Note: note}
	}
	old := func(d time.Duration) string {
		if d < time.Second {
			return ""
		}
		return "oldest " + render.Span(d)
	}
	all := []count{of("running", s.Attempts, ""), of("queued", s.Queued, old(s.QueueAge)), of("waiting", s.Waiting, "")}
	for _, state := range deliveryStates() {
		c := of("deliveries "+render.Spaced(state), s.Deliveries[state], "")
		if state == thread.Received {
			c.Note = old(s.DeliveryAge)
		}
		c.Bad = (state == thread.Failed || state == thread.GivenUp) && s.Deliveries[state] > 0
		all = append(all, c)
	}
	return all
}

// deliveryStates are shown even with a count of 0.
func deliveryStates() []thread.DeliveryState {
	return []thread.DeliveryState{thread.Received, thread.Handled, thread.Unparsable, thread.Failed, thread.GivenUp}
}
