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

// Ground is a thread's repository, what an attempt begins with: the branches that
// matter and the configuration. Lease, Log, Remote and Branch are set by whoever
// makes one, the others by Fetch.
type Ground struct {
	Lease *lease.Holder
	Log   zerolog.Logger
	// Remote is where the repository is fetched from and pushed to; with renew its
	// credential was refused, and another one is made.
	Remote func(ctx context.Context, renew bool) (git.Remote, error)
	Branch string // that is worked on
	// Unknown says that the thread's log holds no push to Branch, which is Pawl's own by its name.
	Unknown bool
	// Pins are commits that the branch must hold, or people are asked first.
	Pins []thread.Pin
	// Unfinished is what the attempt goes on from. Fetch clears what it cannot go on from.
	Unfinished *thread.Unfinished

	Repo      config.Repo      // the repository's own configuration
	Effective config.Effective // the server's, narrowed by it
	Base      string           // the branch that a pull request is to be merged into
	Tip       string           // the commit of Branch at GitHub; empty when it does not exist
	Start     string           // the commit that the attempt starts from
	Into      string           // the commit of Base
	// Updates says that Update was called, and Merging what it merged; nil for nothing.
	Updates bool
	Merging *Merging
	// From is the commit that the branch began from, Before what the verify commands came
	// to there, up to the first that cannot work, Image the digest of the image that programs
	// run in, and Layer what attempts and verifications begin with; zero for nothing.
	// VerifyBase sets them.
	From   string
	Before []policy.Verified
	Image  string
	Layer  policy.Layer
	// Inherited are commits that an Unknown branch held before Pawl's first push. Fetch sets them.
	Inherited []string
	// Titles are the subjects of the last commits of the default branch, whose style new ones follow.
	Titles []string
	// Proposal is the usual setup where the repository has none.
	Proposal policy.Proposal

	settings string // the commit whose configuration was read
	listed   files  // of the commit that was listed last
	cache    *git.Cache
	remote   git.Remote
}

// Fetch brings the branches of a thread and reads the repository's configuration,
// or says why nothing can run.
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

// gitRetries is how often a git operation is tried again that did not reach the
// server, after 1, 2 and 4 s: that outlasts a restart at the other end, and what
// an attempt made is not lost by it. A longer outage is for the queue.
const gitRetries = 3

// authorised runs a git operation, as long as the lease is ours: once more with a
// fresh token when the server refused the credential, as GitHub may revoke one at
// any time, and again after a pause when the server could not be reached.
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
				return err // the old remote stays: what is tried again renews it
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

// goOn has the attempt start from the files of one that was cut off, where it has them
// and the branch still holds what that one started from. What the branch gained
// meanwhile is merged at the push.
func (g *Ground) goOn(ctx context.Context) {
	u := g.Unfinished
	if u == nil {
		return
	}
	fits, err := g.fits(ctx, u)
	if err != nil || !fits {
		g.Log.Warn().Err(err).Msg("the attempt starts from the branch: what an earlier one left is not here, or the branch was changed")
		g.Unfinished = nil
		return
	}
	g.Start = u.Base
}

// fits reports whether the branch holds what an attempt started from that was cut off, and not yet what it made.
func (g *Ground) fits(ctx context.Context, u *thread.Unfinished) (bool, error) {
	holds, err := g.cache.IsAncestor(ctx, u.Base, g.Start)
	if err != nil || u.Commit == "" {
		return holds, err
	}
	pushed, err := g.cache.IsAncestor(ctx, u.Commit, g.Start)
	return holds && !pushed, err
}

// pushSide records and pushes what the thread's reference for unfinished work is to
// be; without a commit it is removed.
func (g *Ground) pushSide(ctx context.Context, t thread.ID, commit string) error {
	act := thread.Act{Key: thread.ActUnfinished, SHA: commit}
	if commit != "" { // a kill leaves it to be removed
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

// fetch brings the branches and finds the commits that matter, or says why nothing can run.
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
	return nil, g.inherit(ctx)
}

// maxInherited bounds the commits of a branch that a receipt names.
const maxInherited = 20

// inherit names the commits that an unknown branch holds. The attempt starts at the base if the branch holds none.
func (g *Ground) inherit(ctx context.Context) (err error) {
	g.Inherited = nil
	if !g.Unknown || g.Tip == "" || g.Into == "" {
		return nil
	}
	if g.Inherited, err = g.cache.Authored(ctx, g.Into, g.Tip, maxInherited); err != nil {
		return err
	}
	if len(g.Inherited) == 0 {
		g.Start = g.Into
	}
	return nil
}

func emptyRepository(why string) *thread.Decided {
	return thread.Refuse(policy.RuleEmptyRepository, "Push a first commit; then comment /pawl retry.", why)
}

// fetchTips fetches the branches and returns their commits, with the name of the default branch.
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
		// It may have got another name since the last event.
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
	default: // also of the pull request of an issue
		names = append(names, n.BaseRef)
	}
	if g.Unfinished.Changed() {
		names = append(names, thread.UnfinishedRef(t))
	}
	return names
}

// rewritten refuses to work where the branch was force-pushed, so that a commit is no part of it any more that people
// spoke of, or that Pawl would go on from by itself. A branch that does not exist is begun anew.
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
			d := thread.Refuse(policy.RuleRewritten, "Look whether what was asked for still holds on the branch as it is now; then comment /pawl retry, or write anew what is to be done.",
				fmt.Sprintf("branch %s was force-pushed: its head %.10s does not hold commit %.10s, %s", g.Branch, g.Tip, pin.SHA, pin.What))
			d.Action, d.On = policy.DoAsk, g.Tip
			return d, nil
		}
	}
	return nil, nil
}

// maxSince bounds what an attempt is told of what became of the lines of one remark, in bytes.
const maxSince = 2 << 10

// Since tells of each remark on lines what became of them between the commit that it was made on and the one that the
// attempt starts from.
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

// configure reads the configuration at the tip of the default branch and narrows
// the server's by it. More commands to verify with may come from elsewhere.
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

// readConfig reads the repository's configuration, if it has one, with what its dev container says.
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

// tip fetches the branch that is worked on; empty when it does not exist.
func (g *Ground) tip(ctx context.Context) (string, error) {
	var tips map[string]string
	err := g.authorised(ctx, func() (err error) {
		tips, err = g.cache.Fetch(ctx, g.remote, g.Branch)
		return err
	})
	return tips[g.Branch], err
}

// spare refuses the default branch. It is asked for right before the push: it may
// have moved since the payload that named it.
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
