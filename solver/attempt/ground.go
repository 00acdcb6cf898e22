package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/lease"
	"github.com/pawlbot/pawl/solver/thread"
)

// Ground holds a thread's repository, branches and configuration. The caller sets the fields up to Unfinished; Lease,
// Log, Remote and Branch are required. Fetch sets the others unless their comments say otherwise.
type Ground struct {
	Lease *lease.Holder
	Log   zerolog.Logger
	// Remote returns the repository's remote. renew replaces a refused credential.
	Remote func(ctx context.Context, renew bool) (git.Remote, error)
	Branch string // the branch to change
	// Unknown means that Branch has Pawl's name, but the thread's log has no push to it.
	Unknown bool
	// Pins are commits that the branch must contain; otherwise Pawl asks users.
	Pins []thread.Pin
	// Unfinished is the work to continue. Fetch clears it if continuing is impossible.
	Unfinished *thread.Unfinished

	Repo      config.Repo      // repository configuration
	Effective config.Effective // server configuration narrowed by Repo
	Base      string           // the pull request's base branch
	Tip       string           // commit of Branch on GitHub, or empty
	Start     string
	Into      string // commit of Base
	// Updates means that Update was called. Merging is the merge of the base, or nil.
	Updates bool
	Merging *Merging
	// VerifyBase sets From, the base commit; Before, the verify results there; Image, the image digest; and Layer, if
	// any.
	From   string
	Before []policy.Verified
	Image  string
	Layer  policy.Layer
	// Inherited lists commits of an Unknown branch before Pawl's first push. Fetch sets it.
	Inherited []string
	// Titles are recent commit subjects of the default branch. New subjects follow their style.
	Titles []string
	// Proposal is a setup for a repository without one. The setup step sets it.
	Proposal policy.Proposal

	settings string // commit with the configuration
	listed   files  // files of the last listed commit
	cache    *git.Cache
	remote   git.Remote
}

// Fetch fetches the thread's branches and reads the repository's configuration. It returns a decision if the attempt
// cannot run.
func (g *Ground) Fetch(ctx context.Context, e *Env, server *config.Server, t thread.ID, n thread.Details, verify []string) (*thread.Decided, error) {
	if err := g.open(ctx, e, t); err != nil {
		return nil, err
	}
	if refused, err := g.fetch(ctx, t, n); refused != nil || err != nil {
		return refused, err
	}
	if refused, err := g.rewritten(ctx); refused != nil || err != nil {
		return refused, err
	}
	g.goOn(ctx)
	g.readTitles(ctx)
	return g.configure(ctx, server, verify)
}

// readTitles reads recent commit subjects. A git error leaves them empty.
func (g *Ground) readTitles(ctx context.Context) {
	if g.settings == "" {
		return
	}
	var err error
	if g.Titles, err = g.cache.LastSubjects(ctx, g.settings, maxTitles); err != nil {
		g.Log.Warn().Err(err).Msg("recent commit subjects cannot be read; new titles follow no style")
	}
}

func (g *Ground) open(ctx context.Context, e *Env, t thread.ID) (err error) {
	if g.remote, err = g.Remote(ctx, false); err != nil {
		return err
	}
	g.cache, err = git.Open(ctx, e.cloneOf(t))
	return err
}

func (g *Ground) Pushed(ctx context.Context, e *Env, t thread.ID, commit string) (bool, error) {
	if err := g.open(ctx, e, t); err != nil {
		return false, err
	}
	tip, err := g.tip(ctx)
	if tip == "" || err != nil {
		return false, err
	}
	return g.cache.IsAncestor(ctx, commit, tip)
}

// gitRetries limits retries after git cannot reach the server: after 1, 2 and 4 s. The queue handles longer outages.
const gitRetries = 3

// authorised runs a git operation under the lease. It renews refused credentials, which GitHub may revoke, and
// retries unreachable servers.
func (g *Ground) authorised(ctx context.Context, do func() error) error {
	fresh := false
	for try := 1; ; {
		err := g.Lease.Confirm(ctx)
		if err == nil {
			err = do()
		}
		switch {
		case err == nil:
			return nil
		case errors.Is(err, git.ErrAuth) && !fresh:
			fresh = true
			remote, err := g.Remote(ctx, true)
			if err != nil {
				return err // the old remote stays; the queue's next try renews the credential
			}
			g.remote = remote
		case errors.Is(err, git.ErrUnavailable) && try <= gitRetries:
			g.Log.Warn().Err(err).Int("try", try).Msg("the git server failed; trying again")
			if err := wait.For(ctx, policy.Retry(try, time.Second, time.Minute, 1)); err != nil {
				return err
			}
			try++
		default:
			return err
		}
	}
}

// goOn starts from unfinished work if the branch still contains its start. The push merges others' newer commits.
func (g *Ground) goOn(ctx context.Context) {
	u := g.Unfinished
	if u == nil {
		return
	}
	fits, err := g.fits(ctx, u)
	if err != nil || !fits {
		g.Log.Warn().Err(err).Msg("the attempt starts from the branch: an earlier attempt's files are not here, or the branch was changed")
		g.Unfinished = nil
		return
	}
	g.Start = u.Base
}

// fits reports whether the branch contains the unfinished work's start, but not the work.
func (g *Ground) fits(ctx context.Context, u *thread.Unfinished) (bool, error) {
	holds, err := g.cache.IsAncestor(ctx, u.Base, g.Start)
	if err != nil || u.Commit == "" {
		return holds, err
	}
	pushed, err := g.cache.IsAncestor(ctx, u.Commit, g.Start)
	return holds && !pushed, err
}

// pushSide pushes the reference for unfinished work. Without a commit it removes the reference.
func (g *Ground) pushSide(ctx context.Context, t thread.ID, commit string) error {
	act := thread.Act{Key: thread.ActUnfinished, SHA: commit}
	if commit != "" { // logged first, so that the reference can be removed even after a kill
		if err := g.Lease.Record(ctx, thread.KindActStarted, act); err != nil {
			return err
		}
	}
	if err := g.authorised(ctx, func() error { return g.cache.PushSide(ctx, g.remote, commit, thread.UnfinishedRef(t)) }); err != nil {
		return err
	}
	return g.Lease.Record(ctx, thread.KindActDone, act)
}

func (g *Ground) Drop(ctx context.Context, e *Env, t thread.ID) error {
	if err := g.open(ctx, e, t); err != nil {
		return err
	}
	return g.pushSide(ctx, t, "")
}

// fetch fetches the branches and their commits. It returns a decision if the attempt cannot run.
func (g *Ground) fetch(ctx context.Context, t thread.ID, n thread.Details) (*thread.Decided, error) {
	def, tips, err := g.fetchTips(ctx, t, n)
	if errors.Is(err, git.ErrEmpty) {
		return emptyRepository("the repository has no commits"), nil
	}
	if err != nil {
		return nil, err
	}
	g.Base = cmp.Or(n.BaseRef, def)
	g.Tip = tips[g.Branch]
	g.Start = cmp.Or(g.Tip, tips[def])
	if g.Tip == "" && n.Pull {
		return thread.Refuse(policy.RuleBranchGone, "Restore the branch; then comment /pawl retry.",
			fmt.Sprintf("branch %s of the pull request does not exist", g.Branch)), nil
	}
	if g.Start == "" {
		return emptyRepository(fmt.Sprintf("branch %s does not exist", def)), nil
	}
	g.settings, g.Into = tips[def], tips[g.Base]
	if err := g.cache.FetchTags(ctx, g.remote); err != nil {
		g.Log.Warn().Err(err).Msg("the repository's tags could not be fetched; a build may derive a wrong version from old tags")
	}
	return nil, g.inherit(ctx)
}

// maxInherited limits the inherited commits in a receipt.
const maxInherited = 20

// inherit lists an unknown branch's commits since its base, or since the default branch if the base is gone. If there
// are none, the attempt starts from the base.
func (g *Ground) inherit(ctx context.Context) (err error) {
	g.Inherited = nil
	if !g.Unknown || g.Tip == "" {
		return nil
	}
	since := cmp.Or(g.Into, g.settings)
	if g.Inherited, err = g.cache.Authored(ctx, since, g.Tip, maxInherited); err != nil {
		return err
	}
	if len(g.Inherited) == 0 {
		g.Start = since
	}
	return nil
}

func emptyRepository(why string) *thread.Decided {
	return thread.Refuse(policy.RuleEmptyRepository, "Push a first commit; then comment /pawl retry.", why)
}

// fetchTips returns the branches' commits and the default branch.
func (g *Ground) fetchTips(ctx context.Context, t thread.ID, n thread.Details) (def string, tips map[string]string, err error) {
	def = n.DefaultBranch
	err = g.authorised(ctx, func() (err error) {
		if def == "" {
			def, err = g.cache.DefaultBranch(ctx, g.remote)
			if err != nil {
				return err
			}
		}
		tips, err = g.cache.Fetch(ctx, g.remote, g.names(t, n, def)...)
		if err != nil || tips[def] != "" {
			return err
		}
		renamed, err := g.cache.DefaultBranch(ctx, g.remote)
		if errors.Is(err, git.ErrNotExist) || renamed == def {
			return nil
		}
		if err != nil {
			return err
		}
		names := g.names(t, n, def)
		def, names[0] = renamed, renamed
		tips, err = g.cache.Fetch(ctx, g.remote, names...)
		return err
	})
	return def, tips, err
}

// names returns the branches and references to fetch, default branch first.
func (g *Ground) names(t thread.ID, n thread.Details, def string) []string {
	names := []string{def, g.Branch}
	switch n.BaseRef {
	case "", def:
	default: // BaseRef is also set for an issue once it has a pull request
		names = append(names, n.BaseRef)
	}
	if g.Unfinished.Changed() {
		names = append(names, thread.UnfinishedRef(t))
	}
	return names
}

// rewritten refuses to work after a force-push removed a pinned commit. Missing branches are created again.
func (g *Ground) rewritten(ctx context.Context) (*thread.Decided, error) {
	for _, pin := range g.Pins {
		if g.Tip == "" {
			return nil, nil
		}
		holds, err := g.cache.Holds(ctx, g.Tip, pin.SHA)
		if err != nil {
			return nil, err
		}
		if !holds {
			d := thread.Refuse(policy.RuleRewritten, "Check whether the request still applies to the current branch; then comment /pawl retry, or write what to do.",
				fmt.Sprintf("branch %s was force-pushed: its head %.10s does not hold commit %.10s, %s", g.Branch, g.Tip, pin.SHA, pin.What))
			d.Action, d.On = policy.DoAsk, g.Tip
			return d, nil
		}
	}
	return nil, nil
}

// maxSince limits the later changes shown for one remark, in bytes.
const maxSince = 2 << 10

// Since adds to each review comment how its lines changed between its commit and the attempt's start.
func (g *Ground) Since(ctx context.Context, parts []Part) error {
	for _, p := range parts {
		for i := range p.Items {
			item := &p.Items[i]
			of := item.Lines
			if of.Commit == "" || of.Commit == g.Start {
				continue
			}
			holds, err := g.cache.Holds(ctx, g.Start, of.Commit)
			if err != nil {
				return err
			}
			if !holds {
				item.Text += "(the branch does not hold that commit any more)\n"
				continue
			}
			changed, err := g.cache.Changed(ctx, of.Commit, g.Start, of.Path, of.First, of.Last, maxSince)
			switch {
			case err != nil:
				return err
			case changed == "":
				item.Text += "(these lines are the same now)\n"
			default:
				item.Text += "(since then)\n| " + strings.ReplaceAll(strings.TrimSpace(changed), "\n", "\n| ") + "\n"
			}
		}
	}
	return nil
}

// configure reads the default branch's configuration and narrows the server's. The caller may add verify commands.
func (g *Ground) configure(ctx context.Context, server *config.Server, verify []string) (*thread.Decided, error) {
	problems, err := g.readConfig(ctx)
	if err != nil {
		return nil, err
	}
	if len(problems) == 0 {
		g.Effective, problems = server.Narrow(g.Repo)
	}
	if len(problems) == 0 {
		g.Effective.Verify = append(g.Effective.Verify, verify...)
		return nil, nil
	}
	d := thread.Refuse(policy.RuleConfigError, "Correct the file on the default branch; then comment /pawl retry.",
		fmt.Sprintf("%s on the default branch has errors", config.RepoFile))
	for _, q := range problems {
		d.Problems = append(d.Problems, thread.Problem{
			Path:    q.File,
			Line:    q.Line,
			Message: strings.TrimSpace(q.Key + " " + q.Message),
			SHA:     g.settings,
		})
	}
	return d, nil
}

func (g *Ground) readConfig(ctx context.Context) (problems []config.Problem, err error) {
	if g.settings != "" {
		data, err := g.cache.ReadFile(ctx, g.settings, config.RepoFile)
		switch {
		case errors.Is(err, git.ErrNotExist):
		case errors.Is(err, git.ErrTooLarge):
			return []config.Problem{{File: config.RepoFile, Line: 1, Message: "is larger than 1 MiB"}}, nil
		case err != nil:
			return nil, fmt.Errorf("read %s at %s: %w", config.RepoFile, g.settings, err)
		default:
			g.Repo, problems = config.ParseRepo(config.RepoFile, data)
		}
	}
	if len(problems) > 0 || !g.Repo.Environment.Devcontainer {
		return problems, nil
	}
	data, err := g.cache.ReadFile(ctx, g.settings, config.DevcontainerFile)
	if err != nil && !errors.Is(err, git.ErrNotExist) {
		return nil, fmt.Errorf("read %s at %s: %w", config.DevcontainerFile, g.settings, err)
	}
	g.Repo.Environment, problems = g.Repo.Environment.WithDevcontainer(data)
	return problems, nil
}

// tip fetches the branch and returns its commit, or empty.
func (g *Ground) tip(ctx context.Context) (string, error) {
	var tips map[string]string
	err := g.authorised(ctx, func() (err error) {
		tips, err = g.cache.Fetch(ctx, g.remote, g.Branch)
		return err
	})
	return tips[g.Branch], err
}

// spare refuses pushes to the default branch and to the pull request's base. It runs just before the push, since the
// default branch may have changed.
func (g *Ground) spare(ctx context.Context, known string) error {
	def := ""
	err := g.authorised(ctx, func() (err error) {
		def, err = g.cache.DefaultBranch(ctx, g.remote)
		return err
	})
	if err != nil {
		return err
	}
	switch g.Branch {
	case def, g.Base, known:
		return fmt.Errorf("branch %s is the default branch or the pull request's base; Pawl never pushes to it: %w", g.Branch, git.ErrInvalid)
	}
	return nil
}
