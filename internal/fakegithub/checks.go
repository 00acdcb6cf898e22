package fakegithub

import (
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// maxOutput is GitHub's documented limit on summary and text of a check run.
// GitHub refuses a longer summary and silently cuts a longer text.
const maxOutput = 65535

type checkSuite struct {
	id      int64
	app     *app
	sha     string
	branch  string
	created time.Time
}

type checkRun struct {
	id         int64
	suite      *checkSuite
	name       string
	sha        string
	externalID string
	details    string
	status     string
	conclusion string
	started    time.Time
	completed  time.Time
	output     checkOutput
	notes      []obj // annotations so far; they add up over requests
	actions    []CheckAction
}

type checkOutput struct {
	Title       *string `json:"title"`
	Summary     *string `json:"summary"`
	Text        *string `json:"text"`
	Annotations []obj   `json:"annotations"`
	Images      []obj   `json:"images"`
}

// CheckAction is a button of a check run.
type CheckAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// checkWish is what creating and updating a check run ask for.
type checkWish struct {
	Name        *string        `json:"name"`
	HeadSHA     *string        `json:"head_sha"`
	DetailsURL  *string        `json:"details_url"`
	ExternalID  *string        `json:"external_id"`
	Status      *string        `json:"status"`
	StartedAt   *time.Time     `json:"started_at"`
	Conclusion  *string        `json:"conclusion"`
	CompletedAt *time.Time     `json:"completed_at"`
	Output      *checkOutput   `json:"output"`
	Actions     *[]CheckAction `json:"actions"`
}

func (s *Server) createCheckRun(c *call) *reply {
	var want checkWish
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if bad := want.check(true); bad != nil {
		return bad
	}
	sha, found := s.resolve(c, *want.HeadSHA)
	if !found || sha != *want.HeadSHA {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+*want.HeadSHA)
	}
	run := s.addCheckRun(c.repo, c.who.app, want)
	rep := created(s.renderCheckRun(c.repo, run))
	rep.header.Set("Location", rep.body.(obj)["url"].(string))
	return rep
}

// addCheckRun creates a check run from valid values and sends its events. GitHub
// documents "created" for a new check run and "completed" for one that has a
// conclusion; consumers report both for a check run that is created completed,
// nearly alike, so both are sent here.
func (s *Server) addCheckRun(r *repository, by *app, want checkWish) *checkRun {
	run := &checkRun{id: s.world.newID(), suite: s.suite(r, by, *want.HeadSHA), name: *want.Name, sha: *want.HeadSHA,
		status: "queued", started: s.now()}
	run.apply(want, s.now())
	r.runs = append(r.runs, run)
	s.emitCheck(r, run, "created", by.bot, nil)
	if run.status == "completed" {
		s.emitCheck(r, run, "completed", by.bot, nil)
	}
	return run
}

// suite finds or makes the one check suite of an App and a commit.
func (s *Server) suite(r *repository, by *app, sha string) *checkSuite {
	for _, known := range r.suites {
		if known.app == by && known.sha == sha {
			return known
		}
	}
	fresh := &checkSuite{id: s.world.newID(), app: by, sha: sha, created: s.now()}
	for name, head := range r.branches {
		if head == sha && (fresh.branch == "" || name < fresh.branch) {
			fresh.branch = name
		}
	}
	r.suites = append(r.suites, fresh)
	return fresh
}

// apply takes over what was asked for. An output replaces the whole former one;
// its annotations are added to those before.
func (run *checkRun) apply(want checkWish, now time.Time) {
	set := func(to *string, from *string) {
		if from != nil {
			*to = *from
		}
	}
	set(&run.name, want.Name)
	set(&run.details, want.DetailsURL)
	set(&run.externalID, want.ExternalID)
	if want.StartedAt != nil {
		run.started = *want.StartedAt
	}
	set(&run.status, want.Status)
	switch {
	case want.Conclusion != nil: // "Providing conclusion will automatically set the status parameter to completed"
		run.status, run.conclusion, run.completed = "completed", *want.Conclusion, now
		if want.CompletedAt != nil {
			run.completed = *want.CompletedAt
		}
	case want.Status != nil && *want.Status != "completed":
		run.conclusion, run.completed = "", time.Time{}
	}
	if want.Actions != nil {
		run.actions = slices.Clone(*want.Actions)
	}
	if want.Output == nil {
		return
	}
	run.output = *want.Output
	run.notes = append(run.notes, want.Output.Annotations...)
	if text := run.output.Text; text != nil && len(*text) > maxOutput {
		end := maxOutput
		for !utf8.RuneStart((*text)[end]) {
			end--
		}
		short := (*text)[:end]
		run.output.Text = &short
	}
}

func (r *repository) run(id int64) *checkRun {
	for _, run := range r.runs {
		if run.id == id {
			return run
		}
	}
	return nil
}

func (s *Server) getCheckRun(c *call) *reply {
	if run := c.repo.run(c.id()); run != nil {
		return ok(s.renderCheckRun(c.repo, run))
	}
	return notFound()
}

// listAnnotations answers in the order in which they were sent.
func (s *Server) listAnnotations(c *call) *reply {
	run := c.repo.run(c.id())
	if run == nil {
		return notFound()
	}
	return page(s, c, run.notes, func(note obj) obj { return s.renderAnnotation(c.repo, run, note) }, array)
}

func (s *Server) updateCheckRun(c *call) *reply {
	run := c.repo.run(c.id())
	if run == nil {
		return notFound()
	}
	if run.suite.app != c.who.app {
		return problem(http.StatusForbidden, "Invalid app_id `"+fmtID(c.who.app.id)+"` - check run can only be modified by the GitHub App that created it.")
	}
	var want checkWish
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if bad := want.check(false); bad != nil {
		return bad
	}
	before := run.status
	run.apply(want, s.now())
	if run.status == "completed" && before != "completed" {
		s.emitCheck(c.repo, run, "completed", c.who.account(), nil)
	}
	return ok(s.renderCheckRun(c.repo, run))
}

// listCheckRuns answers newest first; filter=latest, the default, keeps the
// newest run of each name and App.
func (s *Server) listCheckRuns(c *call) *reply {
	sha, found := s.resolve(c, c.params["ref"])
	if !found {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.params["ref"])
	}
	name, appID, status := c.query("check_name", ""), c.query("app_id", ""), c.query("status", "")
	latest, seen := c.query("filter", "latest") == "latest", map[string]bool{}
	var list []*checkRun
	for _, run := range slices.Backward(c.repo.runs) {
		key := fmtID(run.suite.app.id) + " " + run.name
		if run.sha != sha || (name != "" && run.name != name) || (appID != "" && fmtID(run.suite.app.id) != appID) ||
			(status != "" && run.status != status) || (latest && seen[key]) {
			continue
		}
		seen[key] = true
		list = append(list, run)
	}
	return page(s, c, list, func(run *checkRun) obj { return s.renderCheckRun(c.repo, run) }, func(list []obj, total int) any {
		return obj{"total_count": total, "check_runs": list}
	})
}
