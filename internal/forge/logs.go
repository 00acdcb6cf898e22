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

// Bounds of a job's log.
const (
	maxLog      = 256 << 20      // bytes read; a longer log ends there
	maxLogLine  = 1000           // bytes kept of a line
	maxLogLines = 200            // lines kept, the last ones
	maxLogKept  = 12_000         // bytes kept, of the last lines
	logTime     = 3 * TryTimeout // for the job, the address and the log
)

// scriptColour begins each line of a step's script, as actions/runner writes it (ScriptHandler.cs).
const scriptColour = "\x1b[36;1m"

type Actions struct{ client *Client }

// Jobs reads and reruns jobs of GitHub Actions in a repository. Only Jobs uses a token with the permission actions,
// so an installation without it only lacks logs.
type Jobs struct {
	client *Client
	repo   Repo
	token  string
	Reruns bool // jobs may be rerun
}

// Open asks for actions: write if the App may have it, else for actions: read.
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

// RerunFailed reruns the failed jobs of a workflow run, once: after a lost answer run_attempt shows whether it was
// done (REST reference, "Re-run failed jobs from a workflow run").
func (j Jobs) RerunFailed(ctx context.Context, run int64) error {
	_, err := j.ask(ctx, request{method: http.MethodPost, route: "/repos/{owner}/{repo}/actions/runs/{id}/rerun-failed-jobs", args: []any{run},
		find: func(ctx context.Context) (bool, error) {
			attempt, err := j.RunAttempt(ctx, run)
			return attempt > 1, err
		}}, nil)
	return err
}

// RunAttempt is how often a workflow run was begun.
func (j Jobs) RunAttempt(ctx context.Context, run int64) (int, error) {
	var got struct {
		RunAttempt int `json:"run_attempt"`
	}
	_, err := j.ask(ctx, request{route: "/repos/{owner}/{repo}/actions/runs/{id}", args: []any{run}, holds: []string{"run_attempt"}}, &got)
	return got.RunAttempt, err
}

// FailedJob is a job of GitHub Actions with its first failed step's log.
type FailedJob struct {
	Run     int64    `json:"run_id"`      // its workflow run; 0 if unknown
	Attempt int      `json:"run_attempt"` // of that run, from 1
	Step    string   `json:"-"`           // its name; empty if no step failed
	Command string   `json:"-"`           // the step's script; empty if the log does not have it
	Lines   []string `json:"-"`           // its last lines, without times
	Cut     int      `json:"-"`           // the number of lines left out before them
	URL     string   `json:"html_url"`    // the job's page
}

// FailedJob reads a job, whose id is its check run's (REST reference, "Get a job for a workflow run"), and the log
// of the first failed step's time, which it writes whole to all. It returns the known part of the job even with an
// error.
func (j Jobs) FailedJob(ctx context.Context, id int64, all io.Writer) (cut FailedJob, err error) {
	ctx, cancel := context.WithTimeout(ctx, logTime) // the log's server is not GitHub's API
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

// download reads a log from GitHub's storage without credentials: the address, secret and valid for a minute, has
// its own.
func download(ctx context.Context, by http.RoundTripper, address string) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil || address == "" {
		return nil, errors.New("GitHub named no address of the log")
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

// read keeps the last lines between two times, which GitHub gives in whole seconds, and writes all lines between
// them to all.
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
			return errors.New("the log broke off")
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
		return line, nil // an error comes again
	}
	return "", err
}

// logCut cuts a step's log out of its job's.
type logCut struct {
	job      *FailedJob
	from, to time.Time // the step's; to is zero without an end
	all      io.Writer

	within bool // the last time was the step's
	script bool // the step's script follows
	kept   int  // bytes
}

func (c *logCut) add(line string) {
	said := c.untimed(strings.TrimPrefix(line, "\ufeff"))
	if !c.within {
		return
	}
	_, _ = io.WriteString(c.all, said+"\n")
	shown := logLine(said)
	c.command(said, shown)
	c.keep(shown)
}

// untimed cuts the time off a line. A line without one belongs to the line before it.
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

// command reads the step's script from the first group of its log.
func (c *logCut) command(said, shown string) {
	title, begins := strings.CutPrefix(shown, "##[group]Run ")
	script, colored := strings.CutPrefix(said, scriptColour)
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

// addScript adds a line of the script. The group's title is its first line, which follows in full.
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
	for len(f.Lines) > maxLogLines || c.kept > maxLogKept {
		c.kept -= len(f.Lines[0]) + 1
		f.Lines = f.Lines[1:]
		f.Cut++
	}
}

func logLine(said string) string {
	return render.Head(secret.Redact(render.Clean(said)), maxLogLine)
}
