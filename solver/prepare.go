package solver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/policy"
)

// prepared is a repository that is ready for an attempt.
type prepared struct {
	cache     *git.Cache
	remote    git.Remote
	repo      config.Repo
	effective config.Effective
	base      string // the branch that a pull request is to be merged into
	branch    string // the branch that is worked on
	tip       string // the commit of branch at GitHub; empty when it does not exist
	start     string // the commit that the attempt starts from
	settings  string // the commit whose configuration was read
	into      string // the commit of base
}

// refuse is a stop before anything ran.
func refuse(rule, hint, reason string) *Decided {
	return &Decided{Decision: policy.Decision{Action: policy.DoStop, Rule: rule, Hint: hint, Reasons: []string{reason}}}
}

// prepare fetches the repository and reads its configuration from the default
// branch. The second result is why nothing can run, if so.
func (s *step) prepare(ctx context.Context) (*prepared, *Decided, error) {
	if nothingAsked(s.state) {
		d := refuse("empty_task", "Describe what is wanted in the description, or comment /pawl solve followed by the task.",
			"the description is empty and the command says nothing")
		d.Action = policy.DoAsk
		return nil, d, nil
	}
	if err := s.completeSnapshot(ctx); err != nil {
		return nil, nil, err
	}
	if s.state.Closed != "" {
		return nil, refuse("closed", "", s.state.Closed), nil
	}
	n := s.state.Snapshot
	if n.Pull && n.HeadRepoID != 0 && n.RepoID != 0 && n.HeadRepoID != n.RepoID {
		return nil, refuse("fork", "Push the branch to this repository, or describe the work in an issue.",
			"the pull request comes from a fork, and Pawl pushes to the repository that it is installed on only"), nil
	}
	if n.Pull && n.HeadRef == n.DefaultBranch {
		return nil, refuse("default_branch", "Open the pull request from another branch.",
			"the pull request's branch is the default branch, which Pawl never pushes to"), nil
	}
	p := &prepared{branch: s.branch()}
	if s.staged != nil {
		refused, err := s.staged.fetch(ctx, s, p)
		return p, refused, err
	}
	var err error
	if p.remote, err = s.remote(ctx); err != nil {
		return nil, nil, err
	}
	if p.cache, err = git.Open(ctx, s.cacheDir(s.thread)); err != nil {
		return nil, nil, err
	}
	if refused, err := s.fetch(ctx, p); refused != nil || err != nil {
		return nil, refused, err
	}
	refused, err := s.readConfig(ctx, p)
	return p, refused, err
}

// nothingAsked reports whether neither the description nor a remark says what
// to do.
func nothingAsked(s State) bool {
	if strings.TrimSpace(policy.Content(s.Snapshot.Body)) != "" {
		return false
	}
	for _, r := range s.Feedback {
		if r.Withdrawn == "" && strings.TrimSpace(policy.Visible(r.Text)) != "" {
			return false
		}
	}
	return true
}

// completeSnapshot asks GitHub for a pull request's branches where no payload
// told them: a comment's does not.
func (s *step) completeSnapshot(ctx context.Context) error {
	n := s.state.Snapshot
	if s.Forge == nil || !n.Pull || n.HeadRef != "" && n.HeadRepoID != 0 {
		return nil
	}
	p, err := s.Forge.Pull(ctx, s.repo(), s.thread.Number)
	if err != nil {
		return err
	}
	if p.State != "open" {
		if err := s.record(ctx, KindThread, Change{What: "closed", By: "somebody"}); err != nil {
			return err
		}
		return s.load(ctx)
	}
	seen := Snapshot{HeadRef: p.Head.Ref, HeadSHA: p.Head.SHA, HeadRepoID: p.Head.RepoID, BaseRef: p.Base.Ref}
	if seen.HeadRepoID == 0 {
		// GitHub names no head repository once the fork is deleted.
		seen.HeadRepoID = -1
	}
	if err := s.record(ctx, KindThread, Change{What: "seen", Snapshot: &seen}); err != nil {
		return err
	}
	return s.load(ctx)
}

// addVerify adds the verify commands that a local run was given.
func (s *step) addVerify(e *config.Effective) {
	if s.Local != nil {
		e.Verify = append(e.Verify, s.Local.Verify...)
	}
}

// branch is the branch that is worked on.
func (s *step) branch() string {
	if s.Local != nil {
		return s.Local.Branch
	}
	return s.state.branch(s.thread)
}

// repo is where the thread is at GitHub, after a renaming under the new name: there
// is shown how it ended.
func (s *step) repo() forge.Repo {
	n := s.state.Snapshot
	r := forge.Repo{Owner: s.thread.Owner, Name: s.thread.Name, ID: n.RepoID, Installation: n.Installation}
	if owner, name, ok := s.state.newName(); ok {
		r.Owner, r.Name = owner, name
	}
	return r
}

// newName is the name of the repository after a renaming that ended the work. It is
// not known where GitHub gave only an address.
func (s *State) newName() (owner, name string, ok bool) {
	owner, name, ok = strings.Cut(s.renamedTo, "/")
	return owner, name, ok && s.closedBy == "renamed" && !strings.Contains(name, "/")
}

// remote is where the repository is fetched from and pushed to, with a token
// that reaches this repository only.
func (s *step) remote(ctx context.Context) (git.Remote, error) {
	if s.Forge == nil {
		return git.Remote{URL: s.Local.Dir}, nil
	}
	token, err := s.Forge.Token(ctx, s.repo())
	if err != nil {
		return git.Remote{}, err
	}
	return git.Remote{URL: s.Forge.CloneURL(s.repo()), Token: token}, nil
}

// gitRetries is how often a git operation is tried again that did not reach the
// server, after 1, 2 and 4 s: that outlasts a restart at the other end, and what
// an attempt made is not lost by it. A longer outage is for the queue.
const gitRetries = 3

// authorised runs a git operation, as long as the lease is ours: once more with a fresh token when the server
// refused the credential, as GitHub may revoke one at any time, and again after
// a pause when the server could not be reached.
func (s *step) authorised(ctx context.Context, p *prepared, op func() error) error {
	fresh := false
	for try := 0; ; {
		err := s.lease.confirm(ctx)
		if err == nil {
			err = op()
		}
		switch {
		case s.Forge == nil || err == nil:
			return err
		case errors.Is(err, git.ErrAuth) && !fresh:
			fresh = true
			s.Forge.Forget(s.repo())
			remote, err := s.remote(ctx)
			if err != nil {
				return err
			}
			p.remote = remote
		case errors.Is(err, git.ErrUnavailable) && try < gitRetries:
			s.log.Warn().Err(err).Int("try", try+1).Msg("the git server failed; trying again")
			select {
			case <-time.After(time.Second << try):
			case <-ctx.Done():
				return context.Cause(ctx)
			}
			try++
		default:
			return err
		}
	}
}

// fetch brings the default branch and the branch that is worked on.
func (s *step) fetch(ctx context.Context, p *prepared) (*Decided, error) {
	def := s.state.Snapshot.DefaultBranch
	var tips map[string]string
	err := s.authorised(ctx, p, func() (err error) {
		if def == "" {
			if def, err = p.cache.DefaultBranch(ctx, p.remote); err != nil {
				return err
			}
		}
		names := []string{def, p.branch}
		if base := s.state.Snapshot.BaseRef; s.state.Snapshot.Pull && base != "" && base != def {
			names = append(names, base)
		}
		tips, err = p.cache.Fetch(ctx, p.remote, names...)
		return err
	})
	switch {
	case errors.Is(err, git.ErrEmpty):
		return refuse("empty_repository", "Push a first commit; then comment /pawl retry.", "the repository has no commits"), nil
	case errors.Is(err, git.ErrNotFound) && s.Forge != nil:
		return refuse("repository_gone", "Look whether the App still has access to it; then comment /pawl retry.",
			"GitHub does not show the repository to the App any more"), nil
	case err != nil:
		return nil, err
	}
	p.base = def
	if s.state.Snapshot.Pull && s.state.Snapshot.BaseRef != "" {
		p.base = s.state.Snapshot.BaseRef
	}
	p.tip = tips[p.branch]
	p.start = p.tip
	if p.start == "" {
		if s.state.Snapshot.Pull {
			return refuse("branch_gone", "Restore the branch; then comment /pawl retry.",
				fmt.Sprintf("branch %s of the pull request does not exist", p.branch)), nil
		}
		p.start = tips[def]
	}
	if p.start == "" {
		return refuse("empty_repository", "Push a first commit; then comment /pawl retry.",
			fmt.Sprintf("branch %s does not exist", def)), nil
	}
	p.settings, p.into = tips[def], tips[p.base]
	return nil, nil
}

// maxConfig bounds the repository's configuration file, in bytes; the parser has
// its own, lower bound and a better message.
const maxConfig = 1 << 20

// readConfig reads the configuration at the tip of the default branch and
// narrows the server's by it.
func (s *step) readConfig(ctx context.Context, p *prepared) (*Decided, error) {
	var problems []config.Problem
	if p.settings != "" {
		data, err := p.cache.ReadFile(ctx, p.settings, config.RepoFile, maxConfig)
		switch {
		case errors.Is(err, git.ErrNotExist):
		case errors.Is(err, git.ErrTooLarge):
			problems = []config.Problem{{File: config.RepoFile, Line: 1, Message: "is larger than 1 MiB"}}
		case err != nil:
			return nil, fmt.Errorf("read %s at %s: %w", config.RepoFile, p.settings, err)
		default:
			p.repo, problems = config.ParseRepo(config.RepoFile, data)
		}
	}
	if len(problems) == 0 {
		p.effective, problems = s.Config.Narrow(p.repo)
	}
	if len(problems) == 0 {
		s.addVerify(&p.effective)
		return nil, nil
	}
	d := refuse("config_error", "Correct the file on the default branch; then comment /pawl retry.",
		fmt.Sprintf("%s on the default branch has errors", config.RepoFile))
	for _, q := range problems {
		d.Problems = append(d.Problems, Problem{Path: q.File, Line: q.Line, Message: strings.TrimSpace(q.Key + " " + q.Message), SHA: p.settings})
	}
	return d, nil
}
