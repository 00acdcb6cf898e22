package fakegithub

import (
	"context"
	"maps"
	"slices"
	"time"
)

// Issue is an issue or, with Pull set, a pull request as a reader sees it.
type Issue struct {
	Number    int
	Title     string
	Body      string
	Author    string
	State     string
	Labels    []string
	Reactions []string // "eyes by pawl[bot]"
	UpdatedAt time.Time
	Pull      *Pull
}

// Pull is what a pull request has beyond an issue.
type Pull struct {
	Draft   bool
	Merged  bool
	Head    string
	HeadSHA string
	Base    string
	// HeadRepo is "owner/name" of the repository that has the head: the same one
	// or a fork, empty when the fork is gone.
	HeadRepo string
}

// Comment is a comment on an issue or pull request.
type Comment struct {
	ID        int64
	Author    string
	ViaApp    bool // written with an installation token
	Body      string
	Reactions []string
	CreatedAt time.Time
	UpdatedAt time.Time
}

// CheckRun is a check run as a maintainer sees it.
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
}

// Issues lists issues and pull requests by number; an unknown repository has none.
func (s *Server) Issues(repo string) []Issue {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.world.repo(repo)
	if err != nil {
		return nil
	}
	var list []Issue
	for _, t := range r.threads {
		i := Issue{Number: t.number, Title: t.title, Body: t.body, Author: t.author.login, State: t.state,
			Labels: slices.Clone(t.labels), Reactions: reactionTexts(t.reactions), UpdatedAt: t.updated}
		if t.pull != nil {
			i.Pull = &Pull{Draft: t.pull.draft, Merged: !t.pull.mergedAt.IsZero(), Head: t.pull.headRef, HeadSHA: t.pull.headSHA, Base: t.pull.baseRef}
			if !t.pull.from.deleted {
				i.Pull.HeadRepo = t.pull.from.fullName()
			}
		}
		list = append(list, i)
	}
	return list
}

// Pulls lists only the pull requests.
func (s *Server) Pulls(repo string) []Issue {
	return slices.DeleteFunc(s.Issues(repo), func(i Issue) bool { return i.Pull == nil })
}

// Comments lists the comments of one thread, oldest first.
func (s *Server) Comments(repo string, number int) []Comment {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.world.repo(repo)
	if err != nil {
		return nil
	}
	t, err := r.thread(number)
	if err != nil {
		return nil
	}
	var list []Comment
	for _, m := range t.comments {
		list = append(list, Comment{ID: m.id, Author: m.author.login, ViaApp: m.via != nil, Body: m.body,
			Reactions: reactionTexts(m.reactions), CreatedAt: m.created, UpdatedAt: m.updated})
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

// CheckRuns lists all check runs of a repository in the order they were made.
func (s *Server) CheckRuns(repo string) []CheckRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.world.repo(repo)
	if err != nil {
		return nil
	}
	plain := func(text *string) string {
		if text == nil {
			return ""
		}
		return *text
	}
	var list []CheckRun
	for _, run := range r.runs {
		list = append(list, CheckRun{ID: run.id, App: run.suite.app.slug, Name: run.name, SHA: run.sha, ExternalID: run.externalID,
			Status: run.status, Conclusion: run.conclusion, Title: plain(run.output.Title), Summary: plain(run.output.Summary),
			Text: plain(run.output.Text), DetailsURL: run.details, Actions: slices.Clone(run.actions)})
	}
	return list
}

// Branches maps the branches of a repository to their commits.
func (s *Server) Branches(repo string) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.world.repo(repo)
	if err != nil {
		return nil
	}
	return maps.Clone(r.branches)
}

// Pushes lists every change of a branch, oldest first.
func (s *Server) Pushes(repo string) []Push {
	s.mu.Lock()
	defer s.mu.Unlock()
	r, err := s.world.repo(repo)
	if err != nil {
		return nil
	}
	return slices.Clone(r.pushes)
}

// File reads a file at a branch or commit.
func (s *Server) File(ctx context.Context, repo, ref, path string) (string, error) {
	return s.Git(ctx, repo, "cat-file", "blob", ref+":"+path)
}

// Git runs a git command that reads in the bare repository and returns its
// output, for tests that look at history.
func (s *Server) Git(ctx context.Context, repo string, args ...string) (string, error) {
	s.mu.Lock()
	r, err := s.world.repo(repo)
	s.mu.Unlock()
	if err != nil {
		return "", err
	}
	out, err := r.git.run(ctx, nil, args...)
	return string(out), err
}
