package forge

import (
	"errors"
	"fmt"
	"time"
	"unicode/utf8"

	"github.com/google/go-github/v60/github"
)

// check refuses what GitHub would refuse and what cannot be cut: a shortened
// identifier would be another button.
func (run CheckRun) check() error {
	if run.Name == "" || run.HeadSHA == "" {
		return errors.New("check run: it needs a name and a commit")
	}
	for _, action := range run.Actions {
		if n := utf8.RuneCountInString(action.Identifier); n == 0 || n > maxLabel {
			return fmt.Errorf("check run %s: the identifier %q of a button must have 1 to %d characters", run.Name, action.Identifier, maxLabel)
		}
	}
	return nil
}

// create is the body of the request that makes the check run.
func (run CheckRun) create(now time.Time) github.CreateCheckRunOptions {
	u := run.update(now)
	return github.CreateCheckRunOptions{
		Name: u.Name, HeadSHA: run.HeadSHA, DetailsURL: u.DetailsURL, ExternalID: u.ExternalID,
		Status: u.Status, Conclusion: u.Conclusion, StartedAt: stamp(run.StartedAt), CompletedAt: u.CompletedAt,
		Output: u.Output, Actions: u.Actions,
	}
}

// checkUpdate is go-github's body of an update, except that an empty list of
// buttons is sent too, because leaving it out would keep the old ones.
type checkUpdate struct {
	github.UpdateCheckRunOptions
	Actions []*github.CheckRunAction `json:"actions"`
}

// update is the body of the request that changes the check run.
func (run CheckRun) update(now time.Time) checkUpdate {
	u := checkUpdate{
		UpdateCheckRunOptions: github.UpdateCheckRunOptions{
			Name: run.Name, DetailsURL: optional(run.DetailsURL), ExternalID: optional(run.ExternalID),
			Status: optional(run.Status), Conclusion: optional(run.Conclusion), CompletedAt: stamp(run.CompletedAt),
			Output: run.output(),
		},
		Actions: []*github.CheckRunAction{},
	}
	if run.Conclusion != "" && run.CompletedAt.IsZero() {
		u.CompletedAt = &github.Timestamp{Time: now.UTC()}
	}
	for _, action := range run.Actions[:min(len(run.Actions), maxActions)] {
		u.Actions = append(u.Actions, &github.CheckRunAction{
			Label: clipLine(action.Label, maxLabel), Description: clipLine(action.Description, maxDescription), Identifier: action.Identifier,
		})
	}
	return u
}

// output is nil for a check run without title and summary; GitHub wants both
// where there is one.
func (run CheckRun) output() *github.CheckRunOutput {
	if run.Title == "" && run.Summary == "" {
		return nil
	}
	text := run.Text
	sent := run.Annotations[:min(len(run.Annotations), maxAnnotations)]
	if left := len(run.Annotations) - len(sent); left > 0 {
		text = fmt.Sprintf("%d of %d annotations are left out.\n\n%s", left, len(run.Annotations), text)
	}
	out := &github.CheckRunOutput{
		Title:   github.String(clipLine(run.Title, maxTitle)),
		Summary: github.String(Clip(run.Summary, MaxText)),
		Text:    optional(Clip(text, MaxText)),
	}
	for _, note := range sent {
		out.Annotations = append(out.Annotations, &github.CheckRunAnnotation{
			Path: github.String(note.Path), StartLine: github.Int(note.StartLine),
			EndLine: github.Int(max(note.EndLine, note.StartLine)), AnnotationLevel: github.String(note.Level),
			Message: github.String(Clip(note.Message, MaxText)),
		})
	}
	return out
}

func optional(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

func stamp(t time.Time) *github.Timestamp {
	if t.IsZero() {
		return nil
	}
	return &github.Timestamp{Time: t.UTC()}
}
