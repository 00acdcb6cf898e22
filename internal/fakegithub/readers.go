package fakegithub

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Issue is an issue or, with Pull set, a pull request.
type Issue struct {
	Number    int
	Title     string
	Body      string
	Author    string
	State     string
	Labels    []string
	Reactions []string // such as "eyes by pawl[bot]"
	UpdatedAt time.Time
	Pull      *Pull
}

// Pull has a pull request's additional fields.
type Pull struct {
	Draft   bool
	Asked   []string // requested reviewers
	Merged  bool
	Head    string
	HeadSHA string
	Base    string
}

type Comment struct {
	ID        int64
	Author    string
	ViaApp    bool // written with an installation token
	Body      string
	Reactions []string
	CreatedAt time.Time
	UpdatedAt time.Time
}

type CheckRun struct {
	ID         int64
	App        string
	Name       string
	SHA        string
	ExternalID string
	Status     string
	Conclusion string
	Title      string
	Summary    string
	Text       string
	DetailsURL string
	Actions    []CheckAction
	Notes      []string // annotations as path:line: message
}

func look[T any](w readers, repo string, read func(*repository) T) (nothing T) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r, err := w.repo(repo)
	if err != nil {
		return nothing
	}
	return read(r)
}

func (w readers) Issues(repo string) []Issue {
	return look(w, repo, func(r *repository) (list []Issue) {
		for _, t := range r.threads {
			i := Issue{Number: t.number, Title: t.title, Body: t.body, Author: t.author.login, State: t.state,
				Labels: slices.Clone(t.labels), Reactions: reactionTexts(t.reactions), UpdatedAt: t.updated}
			if t.pull != nil {
				i.Pull = &Pull{Asked: logins(t.pull.asked), Draft: t.pull.draft, Merged: !t.pull.mergedAt.IsZero(), Head: t.pull.headRef, HeadSHA: t.pull.headSHA, Base: t.pull.baseRef}
			}
			list = append(list, i)
		}
		return list
	})
}

func (w readers) Pulls(repo string) []Issue {
	return slices.DeleteFunc(w.Issues(repo), func(i Issue) bool { return i.Pull == nil })
}

func (w readers) Comments(repo string, number int) []Comment {
	return look(w, repo, func(r *repository) (list []Comment) {
		t, err := r.thread(number)
		if err != nil {
			return nil
		}
		for _, m := range t.comments {
			list = append(list, Comment{ID: m.id, Author: m.author.login, ViaApp: m.via != nil, Body: m.body,
				Reactions: reactionTexts(m.reactions), CreatedAt: m.created, UpdatedAt: m.updated})
		}
		return list
	})
}

// Remark is a review comment, or a reply to one.
type Remark struct {
	ID, Answers  int64 // Answers is the id of the thread's first remark; zero for the first
	Author, Body string
	Resolved     bool
}

func (w readers) Remarks(repo string, number int) []Remark {
	return look(w, repo, func(r *repository) (list []Remark) {
		t, err := r.pull(number)
		if err != nil {
			return nil
		}
		for _, c := range t.pull.comments {
			list = append(list, Remark{c.id, c.answers, c.author.login, c.body, c.resolved})
		}
		return list
	})
}

func (w readers) ReviewReactions(repo string, number int) []string {
	return look(w, repo, func(r *repository) (list []string) {
		t, err := r.pull(number)
		if err != nil {
			return nil
		}
		for _, v := range t.pull.reviews {
			list = append(list, reactionTexts(v.reactions)...)
		}
		return list
	})
}

func logins(all []*account) (list []string) {
	for _, a := range all {
		list = append(list, a.login)
	}
	return list
}

func reactionTexts(list []reaction) []string {
	var out []string
	for _, r := range list {
		out = append(out, r.content+" by "+r.user.login)
	}
	return out
}

func (w readers) CheckRuns(repo string) []CheckRun {
	plain := func(text *string) string {
		if text == nil {
			return ""
		}
		return *text
	}
	return look(w, repo, func(r *repository) (list []CheckRun) {
		for _, run := range r.runs {
			var notes []string
			for _, note := range run.notes {
				notes = append(notes, fmt.Sprintf("%v:%v: %v", note["path"], note["start_line"], note["message"]))
			}
			list = append(list, CheckRun{Notes: notes, ID: run.id, App: run.suite.app.slug, Name: run.name, SHA: run.sha, ExternalID: run.externalID,
				Status: run.status, Conclusion: run.conclusion, Title: plain(run.output.Title), Summary: plain(run.output.Summary),
				Text: plain(run.output.Text), DetailsURL: run.details, Actions: slices.Clone(run.actions)})
		}
		return list
	})
}

// RepoID returns a repository's id; zero if unknown.
func (w readers) RepoID(repo string) int64 {
	return look(w, repo, func(r *repository) int64 { return r.id })
}

func (w readers) Branches(repo string) map[string]string {
	return look(w, repo, func(r *repository) map[string]string { return maps.Clone(r.branches) })
}

func (w readers) Pushes(repo string) []Push {
	return look(w, repo, func(r *repository) []Push { return slices.Clone(r.pushes) })
}

// File reads a file at a branch or commit.
func (w readers) File(ctx context.Context, repo, ref, path string) (string, error) {
	r, err := w.find(repo)
	if err != nil {
		return "", err
	}
	o, err := r.git.object(ref + ":" + path)
	if err == nil && o.kind != "blob" {
		err = fmt.Errorf("%s:%s is a %s, not a file", ref, path, o.kind)
	}
	return string(o.content), err
}

// Git runs a read-only git command in the bare repository and returns its output.
func (w readers) Git(ctx context.Context, repo string, args ...string) (string, error) {
	r, err := w.find(repo)
	if err != nil {
		return "", err
	}
	out, err := r.git.run(ctx, nil, args...)
	return string(out), err
}

func (w readers) find(repo string) (*repository, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.repo(repo)
}
