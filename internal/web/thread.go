package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/solver"
)

// How much of a thread its page shows: the newest of each.
const (
	maxAttempts = 100
	maxEvents   = 200
	maxReasons  = 30
	// maxTexts is how many attempts are shown with their texts.
	maxTexts = 5
)

// Lengths of quoted texts, in characters.
const (
	maxRequest = 2_000
	maxFinal   = 2_000
	maxOutput  = 4_000
	maxExcerpt = 400
)

// threadData is the page of one thread.
type threadData struct {
	frame
	Name, Heading   string
	State, Class    string
	Step            bool
	Wake            moment
	Rule            string
	Reasons         []string
	Hint            string
	RequestedBy     string
	Request         string
	Branch          string
	Issue, Pull     string
	Limit           string
	Problems        []string
	Verdicts        []verdict
	Run             int
	Attempts        []attemptLine
	EarlierAttempts int
	Remarks         []remark
	Events          []eventLine
	EarlierEvents   int
	Broken          string
	Subject         string
}

// verdict is one of Pawl's judgements of the run.
type verdict struct {
	Name, Text, Class string
	Reasons           []string
}

// remark is something that somebody said or did, and what was decided about it.
type remark struct {
	When                        moment
	By, Source, Reason, Excerpt string
	Accepted                    bool
}

// thread answers GET /threads/{owner}/{repo}/{n}.
func (p *pages) thread(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := within(r)
	defer cancel()
	t, err := solver.ParseThread(r.PathValue("owner") + "/" + r.PathValue("repo") + "#" + r.PathValue("n"))
	if err != nil {
		plain(w, http.StatusNotFound, "No such thread.")
		return
	}
	real, err := p.Store.Resolve(ctx, t)
	if err != nil {
		p.unavailable(w, r, err)
		return
	}
	if real != t {
		// Seen from /threads/{owner}/{repo}/, wherever a proxy put that.
		guard(w.Header())
		w.Header().Set("Location", "../../../"+href(real))
		w.WriteHeader(http.StatusFound)
		return
	}
	data, err := p.threadData(ctx, t)
	switch {
	case errors.Is(err, solver.ErrNotFound):
		plain(w, http.StatusNotFound, "No such thread: nothing happened on it since Pawl is here.")
	case err != nil:
		p.unavailable(w, r, err)
	default:
		p.render(w, p.threadPage, data)
	}
}

func (p *pages) threadData(ctx context.Context, t solver.Thread) (threadData, error) {
	row, err := p.Store.Thread(ctx, t)
	if err != nil {
		return threadData{}, err
	}
	events, err := p.Store.Events(ctx, t, 0)
	if err != nil {
		return threadData{}, err
	}
	now := p.Now()
	name := line(t.String(), maxName)
	d := threadData{frame: p.frame(name+" · Pawl", "../../../", now), Name: name, Step: row.Running, Wake: until(now, row.WakeAt)}
	d.EarlierEvents = max(0, len(events)-maxEvents)
	for _, e := range slices.Backward(events[d.EarlierEvents:]) {
		d.Events = append(d.Events, told(e, now))
	}
	f, err := p.View(ctx, t)
	if ctx.Err() != nil {
		return d, err
	}
	if err != nil {
		// The log itself can still be read, and says which event is at fault.
		d.State, d.Class, d.Broken = "unreadable", "failed", line(err.Error(), maxReason)
		return d, nil
	}
	p.show(&d, t, f, now)
	return d, nil
}

// show fills in what the fold says.
func (p *pages) show(d *threadData, t solver.Thread, f checkrun.Facts, now time.Time) {
	d.Subject, d.Heading, d.State, d.Class = line(f.Title, maxTitle), headline(f), spaced(string(f.State)), class(f.State)
	d.Rule, d.Hint = spaced(line(f.Rule, maxName)), readable(now, line(f.Hint, maxReason))
	d.Reasons = shortened(now, f.Reasons, maxReasons)
	d.RequestedBy, d.Request = line(f.RequestedBy, maxName), text(f.Request, maxRequest)
	d.Branch, d.Issue, d.Pull = line(f.Branch, maxName), webURL(f.IssueURL), webURL(f.PullURL)
	d.Limit = limit(f, now)
	d.Run = f.Run
	for _, x := range f.Problems {
		d.Problems = append(d.Problems, line(problem(x), maxReason))
	}
	d.Verdicts = verdicts(f, now)
	d.EarlierAttempts = max(0, len(f.Attempts)-maxAttempts)
	for i, a := range slices.Backward(f.Attempts) {
		if i < d.EarlierAttempts {
			break
		}
		d.Attempts = append(d.Attempts, p.attempt(t, f, i, a))
	}
	for _, r := range slices.Backward(f.Feedback) {
		d.Remarks = append(d.Remarks, remark{When: ago(now, r.When), By: line(r.By, maxName), Source: spaced(line(r.Source, maxName)),
			Reason: line(r.Reason, maxReason), Excerpt: text(r.Excerpt, maxExcerpt), Accepted: r.Accepted})
	}
}
