package forge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits of check runs (GitHub REST reference, "Create a check run").
const (
	maxAnnotations = 50
	maxTitle       = 255
)

// Checks reads and writes check runs.
type Checks struct{ client *Client }

// CheckRun holds a check run's content. Most zero values are omitted.
type CheckRun struct {
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha,omitempty"`
	DetailsURL string `json:"details_url,omitempty"` // details page
	ExternalID string `json:"external_id,omitempty"` // Pawl's key to find the check run
	Status     string `json:"status,omitempty"`      // queued, in_progress or completed
	// Conclusion of a completed run: success, failure, neutral, action_required, cancelled, skipped or timed_out.
	Conclusion  string    `json:"conclusion,omitempty"`
	CompletedAt time.Time `json:"completed_at,omitzero"`
	Output      `json:"output,omitzero"`
	Actions     []Button `json:"actions"` // at most three; sent even if empty, to remove old ones
}

// Output holds a check run's text. Title and summary are required.
type Output struct {
	Title       string       `json:"title"`
	Summary     string       `json:"summary"`
	Annotations []Annotation `json:"annotations,omitempty"`
}

// Button is a check run's button. GitHub limits Label and Identifier to 20 characters, Description to 40.
type Button struct {
	Label       string `json:"label"`
	Description string `json:"description"`
	Identifier  string `json:"identifier"`
}

// Annotation is a message at lines of a file. Level is notice, warning or failure.
type Annotation struct {
	Path      string `json:"path"`
	StartLine int    `json:"start_line"`
	EndLine   int    `json:"end_line"`
	Level     string `json:"annotation_level"`
	Message   string `json:"message"`
}

type CheckRunRef struct {
	ID         int64  `json:"id"`
	ExternalID string `json:"external_id"`
	HTMLURL    string `json:"html_url"`
}

// Create creates a check run. After a lost answer it looks for the name and external id first.
func (s Checks) Create(ctx context.Context, repo Repo, run CheckRun) (made CheckRunRef, err error) {
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPost, route: "/repos/{owner}/{repo}/check-runs", body: run.fit(s.client.cfg.Now()), urgency: cosmetic, holds: []string{"id"},
		find: func(ctx context.Context) (found bool, err error) {
			made, found, err = s.Find(ctx, repo, run.HeadSHA, run.Name, run.ExternalID)
			return found, err
		},
	}, &made)
	return made, err
}

// Update replaces a check run's content. HeadSHA cannot change.
func (s Checks) Update(ctx context.Context, repo Repo, id int64, run CheckRun) (got CheckRunRef, err error) {
	run.HeadSHA = ""
	_, err = s.client.on(ctx, repo, request{
		method: http.MethodPatch, route: "/repos/{owner}/{repo}/check-runs/{id}", args: []any{id}, body: run.fit(s.client.cfg.Now()), urgency: cosmetic,
	}, &got)
	return got, err
}

// Find returns this App's newest check run with the name and external id on a commit.
func (s Checks) Find(ctx context.Context, repo Repo, sha, name, externalID string) (newest CheckRunRef, ok bool, err error) {
	all, _, err := s.list(ctx, repo, sha, maxPages, url.Values{
		"check_name": {name},
		"filter":     {"all"},
		"app_id":     {strconv.FormatInt(s.client.cfg.AppID, 10)},
	})
	for _, run := range all {
		wanted := run.Name == name && run.ExternalID == externalID
		if !wanted || !run.by(s.client.cfg.AppID) {
			continue
		}
		if run.ID > newest.ID {
			newest = run.CheckRunRef
		}
	}
	return newest, newest.ID != 0, err
}

func (run CheckRun) fit(now time.Time) CheckRun {
	if run.Conclusion != "" {
		run.CompletedAt = now.UTC()
	}
	run.Title, run.Summary = clipLine(run.Title, maxTitle), clip(run.Summary, maxText)
	run.Annotations = slices.Clone(run.Annotations[:min(len(run.Annotations), maxAnnotations)])
	for i, note := range run.Annotations {
		run.Annotations[i].EndLine, run.Annotations[i].Message = max(note.EndLine, note.StartLine), clip(note.Message, maxText)
	}
	run.Actions = append([]Button{}, run.Actions...)
	return run
}

// CheckResult holds the newest run of any App's check.
type CheckResult struct {
	CheckRunRef
	Name       string `json:"name"`
	HeadSHA    string `json:"head_sha"`
	Status     string `json:"status"`
	Conclusion string `json:"conclusion"` // empty while running
	App        AppID  `json:"app"`
	Output     struct {
		Output
		Text  string `json:"text"`
		Notes int    `json:"annotations_count"`
	} `json:"output"`
}

// by reports whether a run belongs to an App. It returns true if GitHub names no App.
func (r CheckResult) by(app int64) bool { return r.App.ID == 0 || r.App.ID == app }

const resultPages = 5

// MaxResults limits the check runs that Latest reads. Our choice.
const MaxResults = resultPages * pageSize

// Latest lists the newest check runs on a commit or branch ("heads/name"). more means that there are more than
// MaxResults.
func (s Checks) Latest(ctx context.Context, repo Repo, ref string) (all []CheckResult, more bool, err error) {
	return s.list(ctx, repo, ref, resultPages, url.Values{"filter": {"latest"}})
}

func (s Checks) list(ctx context.Context, repo Repo, ref string, most int, query url.Values) (all []CheckResult, more bool, err error) {
	page := 1
	for page != 0 && page <= most {
		var got struct {
			Runs []CheckResult `json:"check_runs"`
		}
		r := request{route: "/repos/{owner}/{repo}/commits/{sha}/check-runs", args: []any{ref}, holds: []string{"check_runs"}, query: query}
		if page, err = s.client.page(ctx, repo, r, page, &got); err != nil {
			return nil, false, err
		}
		all = append(all, got.Runs...)
	}
	return all, page != 0, nil
}

// Comparison relates two commits.
type Comparison struct {
	BehindBy  int `json:"behind_by"` // the base's commits that the head lacks
	MergeBase struct {
		SHA string `json:"sha"`
	} `json:"merge_base_commit"` // common ancestor
}

// Compare compares a commit or branch with a base.
func (s Repositories) Compare(ctx context.Context, repo Repo, base, sha string) (got Comparison, err error) {
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/compare/{range}", args: []any{base + "..." + sha}, holds: []string{"status"},
		query: url.Values{"per_page": {"1"}}, // only the numbers are needed
	}, &got)
	return got, err
}

// BranchRules has a branch's rules: classic protection, and the rules of active rulesets.
type BranchRules struct {
	Classic  bool     // classic protection is on
	Kinds    []string // types of the rulesets' rules
	Required []string // status checks that either requires before a merge
}

type statusCheck struct {
	Context string `json:"context"`
}

// Rules reads a branch's rules, which needs contents: read. A branch is "protected by branch protections or rulesets"
// (REST reference, "List branches"), so an unprotected branch needs no second request.
func (s Repositories) Rules(ctx context.Context, repo Repo, branch string) (rules BranchRules, err error) {
	var got struct {
		Protected  bool `json:"protected"`
		Protection struct {
			Enabled bool `json:"enabled"`
			Checks  struct {
				Contexts []string      `json:"contexts"`
				Checks   []statusCheck `json:"checks"`
			} `json:"required_status_checks"`
		} `json:"protection"`
	}
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/branches/{branch}",
		args:  []any{branch},
		holds: []string{"name"},
	}, &got)
	if err != nil {
		return rules, err
	}
	if !got.Protected {
		return rules, nil
	}
	rules.Classic = got.Protection.Enabled
	rules.require(got.Protection.Checks.Checks)
	for _, name := range got.Protection.Checks.Contexts {
		rules.require([]statusCheck{{name}})
	}
	return rules, s.rulesets(ctx, repo, branch, &rules)
}

// rulesets adds the rules of active rulesets.
func (s Repositories) rulesets(ctx context.Context, repo Repo, branch string, rules *BranchRules) error {
	type rule struct {
		Kind       string `json:"type"`
		Parameters struct {
			Checks []statusCheck `json:"required_status_checks"`
		} `json:"parameters"`
	}
	got, err := readPages[rule](ctx, s.client, repo, rulePages, request{
		route: "/repos/{owner}/{repo}/rules/branches/{branch}",
		args:  []any{branch},
	})
	for _, r := range got {
		rules.Kinds = append(rules.Kinds, r.Kind)
		rules.require(r.Parameters.Checks)
	}
	return err
}

// rulePages limits the pages of 100 rules. Our choice.
const rulePages = 3

func (r *BranchRules) require(checks []statusCheck) {
	for _, c := range checks {
		if !slices.Contains(r.Required, c.Context) {
			r.Required = append(r.Required, c.Context)
		}
	}
}

// File holds a path's content at a commit. Blob is GitHub's hash, "folder" for a folder, or empty if the path does not
// exist.
type File struct {
	Blob    string `json:"sha"`
	Kind    string `json:"type"`    // file, symlink or submodule; empty for a folder
	Content []byte `json:"content"` // base64 in JSON
}

// File reads a file of up to 1 MB at a commit.
func (s Repositories) File(ctx context.Context, repo Repo, path, sha string) (f File, err error) {
	var got json.RawMessage
	_, err = s.client.on(ctx, repo, request{
		route: "/repos/{owner}/{repo}/contents/" + path,
		query: url.Values{"ref": {sha}},
	}, &got)
	switch {
	case errors.Is(err, ErrNotFound):
		return File{}, nil
	case bytes.HasPrefix(got, []byte("[")): // a folder
		return File{Blob: "folder"}, nil
	case err == nil:
		err = json.Unmarshal(got, &f)
	}
	return f, err
}

const (
	// annotationPages limits the pages of 100 annotations. GitHub Actions makes at most 50 errors and warnings per job
	// (docs.github.com, "Workflow commands").
	annotationPages = 2
	// maxMessage limits a message in bytes, so that 50 messages fit into a comment.
	maxMessage = 1200
)

type titled struct {
	Annotation
	Title string `json:"title"`
}

// text prefixes the title unless the message contains it.
func (t titled) text() string {
	message := strings.TrimSpace(t.Message)
	title := strings.TrimSpace(t.Title)
	if strings.Contains(message, title) {
		return message
	}
	return title + ": " + message
}

// Annotations reads at most 50 of the first 200 annotations, failures first, with their titles.
func (s Checks) Annotations(ctx context.Context, repo Repo, checkRunID int64) ([]Annotation, error) {
	r := request{route: "/repos/{owner}/{repo}/check-runs/{id}/annotations", args: []any{checkRunID}}
	all, err := readPages[titled](ctx, s.client, repo, annotationPages, r)
	var failures, others []Annotation
	for _, one := range all {
		one.Message = clip(one.text(), maxMessage)
		if one.Level == "failure" {
			failures = append(failures, one.Annotation)
		} else {
			others = append(others, one.Annotation)
		}
	}
	failures = append(failures, others...)
	return failures[:min(len(failures), maxAnnotations)], err
}
