package forge

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-github/v60/github"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
)

// Limits of a job's log.
const (
	maxLog      = 256 << 20      // bytes read
	maxLogLine  = 1000           // bytes per line
	maxLogLines = 200            // last lines stored
	maxLogBytes = 12_000         // bytes stored of the last lines
	logTime     = 3 * TryTimeout // for reading the job, the log's address and the log
)

// scriptColour begins each line of a step's script (actions/runner, ScriptHandler.cs).
const scriptColour = "\x1b[36;1m"

type Actions struct{ client *Client }

// Jobs reads and reruns GitHub Actions jobs. Only Jobs needs the permission actions.
type Jobs struct {
	client *Client
	repo   Repo
	token  string
	Reruns bool // reruns are allowed
}

// Open requests actions: write if the App has it, otherwise actions: read.
func (s Actions) Open(ctx context.Context, repo Repo, app App) (Jobs, error) {
	open := func(level string) (Jobs, error) {
		permissions := &github.InstallationPermissions{Actions: &level, Metadata: github.String("read")}
		made, err := s.client.Apps.mint(ctx, repo.Installation, repo.narrow(permissions))
		return Jobs{s.client, repo, made.GetToken(), level == "write"}, err
	}
	if app.Permissions["actions"] == "write" {
		if a, err := open("write"); !errors.Is(err, ErrForbidden) {
			return a, err
		}
	}
	return open("read")
}

func (j Jobs) ask(ctx context.Context, r request, into any) (*github.Response, error) {
	r.as, r.token, r.once = asToken, j.token, true
	return j.client.on(ctx, j.repo, r, into)
}

// RerunFailed reruns failed jobs once. After a lost answer, run_attempt shows whether it worked (REST reference,
// "Re-run failed jobs from a workflow run").
func (j Jobs) RerunFailed(ctx context.Context, run int64) error {
	_, err := j.ask(ctx, request{method: http.MethodPost, route: "/repos/{owner}/{repo}/actions/runs/{id}/rerun-failed-jobs", args: []any{run},
		find: func(ctx context.Context) (bool, error) {
			attempt, err := j.RunAttempt(ctx, run)
			return attempt > 1, err
		}}, nil)
	return err
}

// RunAttempt returns how often a workflow run was started.
func (j Jobs) RunAttempt(ctx context.Context, run int64) (int, error) {
	var got struct {
		RunAttempt int `json:"run_attempt"`
	}
	_, err := j.ask(ctx, request{route: "/repos/{owner}/{repo}/actions/runs/{id}", args: []any{run}, holds: []string{"run_attempt"}}, &got)
	return got.RunAttempt, err
}

// FailedJob holds a job and its first failed step's log.
type FailedJob struct {
	Run     int64    `json:"run_id"`      // workflow run, or 0
	Attempt int      `json:"run_attempt"` // the run's attempt, from 1
	Step    string   `json:"-"`           // empty if no step failed
	Command string   `json:"-"`           // empty if not in the log
	Lines   []string `json:"-"`           // last lines without times
	Cut     int      `json:"-"`           // lines omitted before them
	URL     string   `json:"html_url"`    // the job's page
}

// FailedJob reads a job by its check run's id (REST reference, "Get a job for a workflow run"). It writes the failed
// step's whole log to all. Errors may come with a partial result.
func (j Jobs) FailedJob(ctx context.Context, id int64, all io.Writer) (cut FailedJob, err error) {
	ctx, cancel := context.WithTimeout(ctx, logTime) // TryTimeout does not cover the log's server
	defer cancel()
	var job struct {
		FailedJob
		Steps []struct {
			Name       string    `json:"name"`
			Conclusion string    `json:"conclusion"`
			Started    time.Time `json:"started_at"`
			Completed  time.Time `json:"completed_at"`
		} `json:"steps"`
	}
	r := request{route: "/repos/{owner}/{repo}/actions/jobs/{id}", args: []any{id}}
	if _, err := j.ask(ctx, r, &job); err != nil {
		return FailedJob{}, err
	}
	cut = job.FailedJob
	for _, step := range job.Steps {
		if step.Conclusion != "failure" && step.Conclusion != "timed_out" {
			continue
		}
		cut.Step = step.Name
		r.route, r.location = r.route+"/logs", true
		resp, err := j.ask(ctx, r, nil)
		if err != nil {
			return cut, err
		}
		log, err := download(ctx, j.client.cfg.Transport, resp.Header.Get("Location"))
		if err != nil {
			return cut, err
		}
		defer log.Close()
		return cut, cut.read(io.LimitReader(log, maxLog), step.Started, step.Completed, all)
	}
	return cut, errors.New("no step of the job failed")
}

// download opens a log or picture without credentials. Its URL is secret; a log's URL is valid for a minute.
func download(ctx context.Context, by http.RoundTripper, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || address == "" {
		return nil, errors.New("GitHub sent no address for the log")
	}
	resp, err := by.RoundTrip(req)
	if err != nil {
		return nil, errors.New("the log's server did not answer")
	}
	if resp.StatusCode != http.StatusOK {
		_ = resp.Body.Close()
		return nil, fmt.Errorf("the log's server answered %d", resp.StatusCode)
	}
	return resp.Body, nil
}

// read writes all lines between two times to all and keeps the last ones. GitHub's times are whole seconds.
func (f *FailedJob) read(log io.Reader, from, to time.Time, all io.Writer) error {
	cut := logCut{job: f, from: from, to: to, all: all}
	lines := bufio.NewReaderSize(log, 64<<10)
	for {
		line, err := readHead(lines)
		switch err {
		case nil:
			cut.add(line)
		case io.EOF:
			return nil
		default:
			return errors.New("the log ended early")
		}
	}
}

func readHead(lines *bufio.Reader) (string, error) {
	head, more, err := lines.ReadLine()
	line := string(head)
	for more {
		_, more, err = lines.ReadLine()
	}
	if line != "" {
		return line, nil // the next read repeats the error
	}
	return "", err
}

// logCut extracts a step's log from its job's log.
type logCut struct {
	job      *FailedJob
	from, to time.Time // the step's times; to may be zero
	all      io.Writer

	within bool // the last timestamp was within the step
	script bool // the script follows
	kept   int
}

func (c *logCut) add(line string) {
	text := c.untimed(strings.TrimPrefix(line, "\ufeff"))
	if !c.within {
		return
	}
	_, _ = io.WriteString(c.all, text+"\n")
	shown := logLine(text)
	c.command(text, shown)
	c.keep(shown)
}

// untimed removes a line's timestamp. Lines without one continue the previous line.
func (c *logCut) untimed(line string) string {
	stamp, rest, ok := strings.Cut(line, " ")
	if !ok {
		return line
	}
	at, err := time.Parse(time.RFC3339Nano, stamp)
	if err != nil {
		return line
	}
	c.within = c.during(at)
	return rest
}

func (c *logCut) during(at time.Time) bool {
	if at.Before(c.from) {
		return false
	}
	return c.to.IsZero() || at.Before(c.to.Add(time.Second))
}

// command reads the step's script from the log's first group.
func (c *logCut) command(text, shown string) {
	title, begins := strings.CutPrefix(shown, "##[group]Run ")
	script, colored := strings.CutPrefix(text, scriptColour)
	switch {
	case begins && c.job.Command == "":
		c.job.Command = title
		c.script = true
	case colored && c.script:
		c.addScript(logLine(script))
	case strings.HasPrefix(shown, "##[endgroup]"):
		c.script = false
	}
}

// addScript adds a line of the script. The group's title repeats the first line.
func (c *logCut) addScript(line string) {
	if len(c.job.Command) >= maxLogLine {
		return
	}
	if c.job.Command != line {
		c.job.Command += "\n" + line
	}
}

func (c *logCut) keep(line string) {
	f := c.job
	f.Lines = append(f.Lines, line)
	c.kept += len(line) + 1
	for len(f.Lines) > maxLogLines || c.kept > maxLogBytes {
		c.kept -= len(f.Lines[0]) + 1
		f.Lines = f.Lines[1:]
		f.Cut++
	}
}

func logLine(text string) string {
	return render.Head(secret.Redact(render.Clean(text)), maxLogLine)
}
