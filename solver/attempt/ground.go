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

// Ground is a thread's repository: the branches and the configuration. Its maker sets Lease, Log, Remote and
// Branch; Fetch sets the others.
type Ground struct {
	Lease *lease.Holder
	Log   zerolog.Logger
	// Remote is where the repository is fetched from and pushed to. renew replaces a refused credential.
	Remote func(ctx context.Context, renew bool) (git.Remote, error)
	Branch string // to work on
	// Unknown says that the thread's log holds no push to Branch, which is Pawl's own by its name.
	Unknown bool
	// Pins are commits that the branch must contain, or users are asked first.
	Pins []thread.Pin
	// Unfinished is where the attempt continues. Fetch clears it if that is impossible.
	Unfinished *thread.Unfinished

	Repo      config.Repo      // the repository's own configuration
	Effective config.Effective // the server's, narrowed by Repo
	Base      string           // the pull request's base branch
	Tip       string           // the commit of Branch at GitHub; empty if it does not exist
	Start     string           // the attempt's start commit
	Into      string           // the commit of Base
	// Updates says that Update was called, and Merging its merge; nil for none.
	Updates bool
	Merging *Merging
	// From is the commit that the branch began from; Before are the verify commands' results there, up to the first
	// that cannot work; Image is the digest of the programs' image; Layer is the layer of attempts and
	// verifications, zero for none. VerifyBase sets them.
	From   string
	Before []policy.Verified
	Image  string
	Layer  policy.Layer
	// Inherited are commits that an Unknown branch held before Pawl's first push. Fetch sets them.
	Inherited []string
	// Titles are the subjects of the last commits of the default branch, whose style new ones follow.
	Titles []string
	// Proposal is the usual setup for a repository without one.
	Proposal policy.Proposal

	settings string // the configuration's commit
	listed   files  // of the last listed commit
	cache    *git.Cache
	remote   git.Remote
}

// Fetch fetches a thread's branches and reads the repository's configuration, or says why nothing can run.
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

// readTitles reads how commits of the default branch are titled. An attempt does without where git cannot tell.
func (g *Ground) readTitles(ctx context.Context) {
	if g.settings == "" {
		return
	}
	var err error
	if g.Titles, err = g.cache.LastSubjects(ctx, g.settings, maxTitles); err != nil {
		g.Log.Warn().Err(err).Msg("new titles follow no style: git does not list the last commits")
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

// gitRetries is how often a git operation is retried that did not reach the server, after 1, 2 and 4 s: that
// outlasts a restart at the other end without losing an attempt's work. The queue handles longer outages.
const gitRetries = 3

// authorised runs a git operation while the lease is ours: again with a fresh token if the server refused the
// credential, as GitHub may revoke one at any time, and again after a pause if the server could not be reached.
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
				return err // the old remote stays: a retry renews it
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

// goOn starts the attempt from the files of a cut-off one, if it has them and the branch still contains that one's
// start. The push merges later commits.
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

// fits reports whether the branch contains a cut-off attempt's start, and not yet its work.
func (g *Ground) fits(ctx context.Context, u *thread.Unfinished) (bool, error) {
	holds, err := g.cache.IsAncestor(ctx, u.Base, g.Start)
	if err != nil || u.Commit == "" {
		return holds, err
	}
	pushed, err := g.cache.IsAncestor(ctx, u.Commit, g.Start)
	return holds && !pushed, err
}

// pushSide records and pushes the thread's reference for unfinished work; without a commit it is removed.
func (g *Ground) pushSide(ctx context.Context, t thread.ID, commit string) error {
	act := thread.Act{Key: thread.ActUnfinished, SHA: commit}
	if commit != "" { // after a kill it is still removed
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

// fetch fetches the branches and finds the commits, or says why nothing can run.
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
		g.Log.Warn().Err(err).Msg("the repository's tags are not up to date; a build may take another version from them")
	}
	return nil, g.inherit(ctx)
}

// maxInherited bounds the commits of a branch that a receipt names.
const maxInherited = 20

// inherit names the commits that an unknown branch holds: since its base, or since the default branch if the base is
// gone. The attempt starts there if the branch holds none.
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

// fetchTips fetches the branches and returns their commits, and the default branch's name.
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
		// It may have been renamed since the last event.
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

// names are the branches and references to fetch, the default branch first.
func (g *Ground) names(t thread.ID, n thread.Details, def string) []string {
	names := []string{def, g.Branch}
	switch n.BaseRef {
	case "", def:
	default: // also for an issue's pull request
		names = append(names, n.BaseRef)
	}
	if g.Unfinished.Changed() {
		names = append(names, thread.UnfinishedRef(t))
	}
	return names
}

// rewritten refuses to work after a force-push that removed a commit that requests were about, or that Pawl would
// continue from. A branch that does not exist is begun again.
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

// maxSince limits the text on what became of the lines of one remark, in bytes.
const maxSince = 2 << 10

// Since adds to each review comment what became of its lines between its commit and the attempt's start.
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

// configure reads the configuration at the tip of the default branch and narrows the server's by it. The caller may
// add verify commands.
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

// readConfig reads the repository's configuration, if it has one, with its dev container.
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

// tip fetches the branch to work on; empty if it does not exist.
func (g *Ground) tip(ctx context.Context) (string, error) {
	var tips map[string]string
	err := g.authorised(ctx, func() (err error) {
		tips, err = g.cache.Fetch(ctx, g.remote, g.Branch)
		return err
	})
	return tips[g.Branch], err
}

// spare refuses the default branch. It is called right before the push, since the default branch may have moved
// since the payload that named it.
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
		return fmt.Errorf("branch %s is the default branch, which is never pushed to: %w", g.Branch, git.ErrInvalid)
	}
	return nil
}
