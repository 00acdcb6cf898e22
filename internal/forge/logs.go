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

	"github.com/pawlbot/pawl/internal/text"
)

// Bounds of a job's log.
const (
	maxLog      = 256 << 20   // bytes read; a log that is longer ends there
	maxLogLine  = 1000        // bytes kept of a line
	maxLogLines = 200         // lines kept, the last ones
	maxLogKept  = 12_000      // bytes kept, of the last lines
	logTime     = time.Minute // for the job, the address and the log together
)

// FailedStep is what the log of a job of GitHub Actions says of the first step that failed.
type FailedStep struct {
	Name    string
	Command string   // the first line of what the step ran; empty where the log does not say it
	Lines   []string // the last of its time, without their times
	Cut     int      // how many lines of it were left out before them
	URL     string   // the job's page
}

// ReadFailedStep reads the log of a job, whose id is that of its check run (REST reference, "Get a job for a workflow
// run"), as far as it is of the first failed step's time, and writes the whole of that to all. Only here a token with
// actions: read is used, so that an installation which did not grant it lacks logs and nothing else.
func ReadFailedStep(ctx context.Context, c *Client, repo Repo, jobID int64, all io.Writer) (FailedStep, error) {
	ctx, cancel := context.WithTimeout(ctx, logTime) // the log's server is not GitHub's API, and a delivery waits for it
	defer cancel()
	opts := &github.InstallationTokenOptions{Permissions: &github.InstallationPermissions{Actions: github.String("read"), Metadata: github.String("read")}}
	if opts.RepositoryIDs = []int64{repo.ID}; repo.ID == 0 {
		opts.RepositoryIDs, opts.Repositories = nil, []string{repo.Name}
	}
	made, err := c.mint(ctx, repo.Installation, opts)
	if err != nil {
		return FailedStep{}, err
	}
	var job struct {
		HTMLURL string `json:"html_url"`
		Steps   []struct {
			Name       string    `json:"name"`
			Conclusion string    `json:"conclusion"`
			Started    time.Time `json:"started_at"`
			Completed  time.Time `json:"completed_at"`
		} `json:"steps"`
	}
	r := request{route: "/repos/{owner}/{repo}/actions/jobs/{id}", args: []any{jobID}, as: asToken, token: made.GetToken(), once: true}
	if _, err := c.on(ctx, repo, r, &job); err != nil {
		return FailedStep{}, err
	}
	for _, step := range job.Steps {
		if step.Conclusion != "failure" && step.Conclusion != "timed_out" {
			continue
		}
		r.route, r.location = r.route+"/logs", true
		resp, err := c.on(ctx, repo, r, nil)
		if err != nil {
			return FailedStep{}, err
		}
		cut := FailedStep{Name: step.Name, URL: job.HTMLURL}
		log, err := download(ctx, c.cfg.Transport, resp.Header.Get("Location"))
		if err != nil {
			return FailedStep{}, err
		}
		defer log.Close()
		err = cut.read(io.LimitReader(log, maxLog), step.Started, step.Completed, all)
		return cut, err
	}
	return FailedStep{}, errors.New("no step of the job failed")
}

// download asks for a log where GitHub keeps it, without any credentials: the address, which is secret for the minute
// that it holds, has its own.
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

// read keeps the last lines between two times, which GitHub tells in whole seconds. A line without a time belongs to
// the one before it.
func (f *FailedStep) read(log io.Reader, from, to time.Time, all io.Writer) error {
	within, kept := false, 0
	lines := bufio.NewReaderSize(log, 64<<10)
	for {
		line, long, err := lines.ReadLine()
		for rest := long; rest && err == nil; { // only the head of a very long line is read
			_, rest, err = lines.ReadLine()
		}
		if err != nil && len(line) == 0 {
			if err == io.EOF {
				return nil
			}
			return errors.New("the log broke off")
		}
		said := strings.TrimPrefix(string(line), "\ufeff")
		if stamp, rest, ok := strings.Cut(said, " "); ok {
			if at, err := time.Parse(time.RFC3339Nano, stamp); err == nil {
				said, within = rest, !at.Before(from) && (to.IsZero() || at.Before(to.Add(time.Second)))
			}
		}
		if !within {
			continue
		}
		_, _ = io.WriteString(all, said+"\n")
		said = text.Head(text.Redact(text.Clean(said)), maxLogLine)
		if command, ok := strings.CutPrefix(said, "##[group]Run "); ok && f.Command == "" {
			f.Command = command
		}
		f.Lines, kept = append(f.Lines, said), kept+len(said)+1
		for len(f.Lines) > maxLogLines || kept > maxLogKept {
			kept -= len(f.Lines[0]) + 1
			f.Lines, f.Cut = f.Lines[1:], f.Cut+1
		}
	}
}
