package forge

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/google/go-github/v60/github"
)

const (
	// annotationPages bounds how many pages of 100 are looked through. GitHub
	// Actions makes at most 10 errors and 10 warnings a step and 50 a job
	// (docs.github.com, "Workflow commands"); other Apps may make more.
	annotationPages = 2
	// maxMessage bounds the message of one annotation in bytes, so that 50 of them
	// are about as long as a comment may be.
	maxMessage = 1200
)

// Annotations reads what a check run says of lines: those of level failure first,
// then the others, each kind in the order in which they were made, at most 50 of
// the first 200. A message begins with the annotation's title, which often names
// the test, unless it says the title itself.
func (c *Client) Annotations(ctx context.Context, repo Repo, checkRunID int64) ([]Annotation, error) {
	var failures, others []Annotation
	for page := 1; page != 0 && page <= annotationPages; {
		var got []*github.CheckRunAnnotation
		next := 0
		err := c.on(ctx, repo, request{method: http.MethodGet, route: "/repos/{owner}/{repo}/check-runs/{id}/annotations", send: func(ctx context.Context, gh *github.Client) error {
			list, resp, err := gh.Checks.ListCheckRunAnnotations(ctx, repo.Owner, repo.Name, checkRunID, &github.ListOptions{Page: page, PerPage: pageSize})
			if err == nil {
				got, next = list, resp.NextPage
			}
			return err
		}})
		if err != nil {
			return nil, err
		}
		for _, one := range got {
			note := annotation(one)
			if note.Level == "failure" {
				failures = append(failures, note)
			} else {
				others = append(others, note)
			}
		}
		page = next
	}
	all := slices.Concat(failures, others)
	return all[:min(len(all), maxAnnotations)], nil
}

func annotation(a *github.CheckRunAnnotation) Annotation {
	message := strings.TrimSpace(a.GetMessage())
	if title := strings.TrimSpace(a.GetTitle()); title != "" && !strings.Contains(message, title) {
		message = title + ": " + message
	}
	return Annotation{
		Path: a.GetPath(), StartLine: a.GetStartLine(), EndLine: a.GetEndLine(), Level: a.GetAnnotationLevel(),
		Message: Clip(message, maxMessage),
	}
}
