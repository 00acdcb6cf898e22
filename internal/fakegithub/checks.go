package fakegithub

import (
	"fmt"
	"net/http"
	"slices"
	"time"
	"unicode/utf8"
)

// maxOutput is the documented limit on a check run's summary and text. GitHub refuses a longer summary and silently
// truncates a longer text.
const maxOutput = 65535

type checkSuite struct {
	id      int64
	app     *app
	sha     string
	branch  string
	created time.Time
	reruns  int // how often failed jobs were re-run
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
	notes      []obj // annotations of all requests so far
	actions    []CheckAction
	job        *Job // nil except for GitHub Actions
	attempt    int  // the workflow run's attempt
}

type checkOutput struct {
	Title       *string `json:"title"`
	Summary     *string `json:"summary"`
	Text        *string `json:"text"`
	Annotations []obj   `json:"annotations"`
	Images      []obj   `json:"images"`
}

type CheckAction struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// checkParams are the parameters to create or update a check run.
type checkParams struct {
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

func (w checks) createCheckRun(c *call) *reply {
	var want checkParams
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if bad := want.check(true); bad != nil {
		return bad
	}
	sha, found := c.resolve(*want.HeadSHA)
	if !found || sha != *want.HeadSHA {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+*want.HeadSHA)
	}
	run := w.addCheckRun(c.repo, c.who.app, want)
	return created(w.renderCheckRun(c.repo, run))
}

// addCheckRun creates a check run and sends its events. Consumers report that GitHub sends both "created" and
// "completed" for a run created as completed.
func (w checks) addCheckRun(r *repository, by *app, want checkParams) *checkRun {
	run := &checkRun{id: w.newID(), suite: w.suite(r, by, *want.HeadSHA), name: *want.Name, sha: *want.HeadSHA,
		status: "queued", started: w.now()}
	run.attempt = run.suite.attempt()
	run.apply(want, w.now())
	r.runs = append(r.runs, run)
	w.emitCheck(r, run, "created", by.bot, nil)
	if run.status == "completed" {
		w.emitCheck(r, run, "completed", by.bot, nil)
	}
	return run
}

// suite returns an App's check suite for a commit. It creates a missing suite.
func (w checks) suite(r *repository, by *app, sha string) *checkSuite {
	for _, known := range r.suites {
		if known.app == by && known.sha == sha {
			return known
		}
	}
	fresh := &checkSuite{id: w.newID(), app: by, sha: sha, created: w.now()}
	for name, head := range r.branches {
		if head == sha && (fresh.branch == "" || name < fresh.branch) {
			fresh.branch = name
		}
	}
	r.suites = append(r.suites, fresh)
	return fresh
}

// apply changes a run. A new output replaces the old one, but annotations accumulate.
func (run *checkRun) apply(want checkParams, now time.Time) {
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

func (w checks) listAnnotations(c *call, run *checkRun) *reply {
	return page(c, run.notes, func(note obj) obj { return w.renderAnnotation(c.repo, run, note) }, array)
}

func (w checks) updateCheckRun(c *call, run *checkRun) *reply {
	if run.suite.app != c.who.app {
		return problem(http.StatusForbidden, "Invalid app_id `"+fmtID(c.who.app.id)+"` - check run can only be modified by the GitHub App that created it.")
	}
	var want checkParams
	if bad := c.decode(&want); bad != nil {
		return bad
	}
	if bad := want.check(false); bad != nil {
		return bad
	}
	before := run.status
	run.apply(want, w.now())
	if run.status == "completed" && before != "completed" {
		w.emitCheck(c.repo, run, "completed", c.who.account(), nil)
	}
	return ok(w.renderCheckRun(c.repo, run))
}

// listCheckRuns lists newest first; filter=latest, the default, keeps the newest run of each name and App.
func (w checks) listCheckRuns(c *call) *reply {
	sha, found := c.resolve(c.r.PathValue("ref"))
	if !found {
		return problem(http.StatusUnprocessableEntity, "No commit found for SHA: "+c.r.PathValue("ref"))
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
	return page(c, list, func(run *checkRun) obj { return w.renderCheckRun(c.repo, run) }, func(list []obj, total int) any {
		return obj{"total_count": total, "check_runs": list}
	})
}

// CheckResult is another App's report. Without title and summary the run has only annotations, like a GitHub
// Actions run.
type CheckResult struct {
	SHA         string
	Name        string
	Conclusion  string
	Title       string
	Summary     string
	Annotations []CheckAnnotation // GitHub accepts 50 per request
	Job         *Job              // for the App with the slug github-actions
}

// CheckAnnotation is a remark on a line. GitHub Actions' own messages have the path ".github".
type CheckAnnotation struct {
	Path    string
	Line    int
	Level   string // notice, warning or failure; empty means failure
	Title   string // may be empty
	Message string
}

func (a CheckAnnotation) sent() obj {
	note := obj{"path": a.Path, "start_line": a.Line, "end_line": a.Line, "annotation_level": "failure", "message": a.Message}
	if a.Level != "" {
		note["annotation_level"] = a.Level
	}
	if a.Title != "" {
		note["title"] = a.Title
	}
	return note
}

// CompleteCheckRun reports a finished check run by another App (AddOtherApp), and returns its id.
func (w checks) CompleteCheckRun(repo, appSlug string, c CheckResult) (int64, error) {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return 0, err
	}
	other := w.otherApps[appSlug]
	if other == nil {
		return 0, fmt.Errorf("no App %q: call AddOtherApp first", appSlug)
	}
	want := checkParams{Name: &c.Name, HeadSHA: &c.SHA, Conclusion: &c.Conclusion}
	if c.Title+c.Summary != "" {
		want.Output = &checkOutput{Title: &c.Title, Summary: &c.Summary}
	}
	if bad := want.check(true); bad != nil {
		return 0, fmt.Errorf("check run %q: %s", c.Name, bad)
	}
	if want.Output == nil {
		want.Output = new(checkOutput)
	}
	for _, a := range c.Annotations {
		want.Output.Annotations = append(want.Output.Annotations, a.sent())
	}
	for _, run := range r.runs { // an unfinished run
		if run.suite.app == other && run.sha == c.SHA && run.name == c.Name && run.status != "completed" {
			run.job = c.Job
			run.apply(want, w.now())
			w.emitCheck(r, run, "completed", other.bot, nil)
			return run.id, nil
		}
	}
	run := w.addCheckRun(r, other, want)
	run.job = c.Job
	return run.id, nil
}

// ClickButton presses a button of a check run. Unlike GitHub, it accepts clicks on unfinished runs, because a
// click may arrive late.
func (w checks) ClickButton(repo string, runID int64, identifier, as string) error {
	return w.onRun(repo, runID, as, func(r *repository, run *checkRun, by *account) error {
		if !slices.ContainsFunc(run.actions, func(a CheckAction) bool { return a.Identifier == identifier }) {
			return fmt.Errorf("check run %q has no button %q", run.name, identifier)
		}
		w.emitOwn(r, run, "requested_action", by, obj{"requested_action": obj{"identifier": identifier}})
		return nil
	})
}

func (w checks) Rerequest(repo string, runID int64, as string) error {
	return w.onRun(repo, runID, as, func(r *repository, run *checkRun, by *account) error {
		w.emitOwn(r, run, "rerequested", by, nil)
		return nil
	})
}

// RerequestAll re-runs all checks of the App that made a check run.
func (w checks) RerequestAll(repo string, runID int64, as string) error {
	return w.onRun(repo, runID, as, func(r *repository, run *checkRun, by *account) error {
		if run.suite.app == w.app {
			w.emit("check_suite", r, by, obj{"action": "rerequested", "check_suite": w.renderCheckRunEvent(r, run)["check_suite"]})
		}
		return nil
	})
}

// emitOwn sends events for the check run's App only.
func (w checks) emitOwn(r *repository, run *checkRun, action string, by *account, extra obj) {
	if run.suite.app == w.app {
		w.emitCheck(r, run, action, by, extra)
	}
}

func (w checks) onRun(repo string, runID int64, as string, do func(*repository, *checkRun, *account) error) error {
	defer w.act()()
	r, err := w.repo(repo)
	if err != nil {
		return err
	}
	run := r.run(runID)
	if run == nil {
		return fmt.Errorf("no check run %d in %s", runID, repo)
	}
	by, err := w.account(as)
	if err != nil {
		return err
	}
	return do(r, run, by)
}
