package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/simhash"
	"github.com/pawlbot/pawl/solver/thread"
)

// checkout implements Executor with git, the sandbox and an agent.
type checkout struct {
	*Attempt
	ws      *git.Workspace
	monitor *loopMonitor
	adapter agent.Adapter
	models  modelAccess
	footing footing
}

func NewCheckout(a *Attempt) Executor { return &checkout{Attempt: a} }

// Open empties the attempt's folder and checks out the repository. HOME is kept only if its session continues.
func (c *checkout) Open(ctx context.Context) (err error) {
	dir, home := c.Env.attemptDir(c.Thread, c.N), c.Env.homeOf(c.Thread)
	old := []string{dir, c.Env.workOf(c.Thread)}
	if c.Session == "" {
		old = append(old, home)
	}
	for _, path := range old {
		if err := git.Remove(path); err != nil {
			return fmt.Errorf("clear %s: %w", path, err)
		}
	}
	for _, path := range []string{dir, home} {
		if err := os.MkdirAll(path, 0o700); err != nil {
			return err
		}
	}
	c.ws, err = c.Ground.cache.Checkout(ctx, c.checkout())
	if err != nil {
		return err
	}
	crash.Point("cloned")
	if c.footing, err = c.over(ctx, c.Ground.Layer.Key, c.ws, home, c.Session == ""); err != nil {
		return err
	}
	c.Receipt.Layer = c.Ground.Layer
	c.Receipt.StartTree, c.Receipt.EndTree = c.ws.StartTree, c.ws.StartTree
	if m := c.Ground.Merging; m != nil {
		c.ws.StartTree = m.Tree // the agent did not make the merge's changes
	}
	c.monitor, err = newLoopMonitor(c.ws.Dir, c.Ground.Effective, c.Env.Now())
	return err
}

func (c *checkout) checkout() git.CheckoutSpec {
	spec := git.CheckoutSpec{Commit: c.Ground.Start, Dir: c.Env.workOf(c.Thread), Branch: c.Ground.Branch, Base: c.Ground.Base, From: c.Ground.From}
	if u := c.Ground.Unfinished; u != nil {
		spec.Files = u.Commit
	}
	if m := c.Ground.Merging; m != nil {
		spec.Files = m.Tree
	}
	return spec
}

func (c *checkout) Close() {
	if c.monitor != nil {
		c.monitor.files.root.Close()
	}
	if c.ws == nil {
		return
	}
	if c.handover != nil { // Finish removes the files once the handover is logged
		c.ws.Leave()
		return
	}
	if err := c.ws.Close(); err != nil {
		c.Log.Warn().Err(err).Msg("workspace left behind")
	}
	if c.footing.leave != nil {
		c.footing.leave()
	}
	c.Env.makeRoom(c.Thread, c.Log)
}

// maxDiff limits the diff that a fingerprint covers, in bytes.
const maxDiff = 4 << 20

// Commit commits the agent's changes except protected paths.
func (c *checkout) Commit(ctx context.Context) error {
	if c.ws == nil {
		return errors.New("the checkout was incomplete")
	}
	snap, err := c.ws.Snapshot(ctx)
	if c.Decision.Purpose != policy.ToChange {
		return c.throwAway(ctx, snap, err)
	}
	if err == nil {
		err = c.commitLeft(ctx, snap)
	}
	if errors.Is(err, git.ErrUnsafe) || errors.Is(err, git.ErrTooLarge) {
		c.unusable(err)
		return nil
	}
	return err
}

// commitLeft commits the changes unless they contain apparent secrets or conflict markers.
func (c *checkout) commitLeft(ctx context.Context, snap git.Snapshot) error {
	r := &c.Receipt
	for _, l := range snap.Left {
		c.leaveOut(l.Reason, l.Path)
	}
	tree, protected, err := c.ws.Without(ctx, snap.Tree, c.ws.StartTree, c.Ground.Effective.Protects)
	if err != nil {
		return err
	}
	c.leaveOut("protected", protected...)
	tree, err = c.filtered(ctx, tree)
	if err != nil {
		return err
	}
	if err := c.leaks(ctx, tree); err != nil || len(r.Leaks) > 0 {
		return err
	}
	if done, err := c.merged(ctx, tree); err != nil || !done {
		return err
	}
	r.EndTree = tree
	if !r.Progress() {
		return nil
	}
	if err := c.describe(ctx); err != nil {
		return err
	}
	r.Title = c.redactor().Redact(r.Title)
	r.Conventional = policy.AreConventional(c.Ground.Titles)
	subject, parents := Subject(c.State, c.Thread, *r, maxSubject), []string{c.Ground.Start}
	if r.Updated != "" {
		subject = render.Subject(fmt.Sprintf("Merge branch %s into %s", c.Ground.Base, c.Ground.Branch), maxSubject)
		parents = append(parents, r.Updated)
	}
	by := "by backend " + c.Backend
	if c.NoAgent {
		by = "without an agent"
	}
	body := fmt.Sprintf("Attempt %d %s.\n%s", c.N, by, c.Trailer)
	r.Commit, err = c.ws.Commit(ctx, c.commit(subject, body, tree, parents...))
	if errors.Is(err, git.ErrUnsafe) {
		r.EndTree = "" // no attempt can start from this tree
	}
	return err
}

// filtered returns the tree without changes to files that a git filter would convert.
func (c *checkout) filtered(ctx context.Context, tree string) (string, error) {
	raw, err := c.ws.Unfiltered(ctx, c.ws.StartTree, tree)
	if err != nil || len(raw) == 0 {
		return tree, err
	}
	paths := map[string]bool{}
	for _, l := range raw {
		paths[l.Path] = true
		c.leaveOut(l.Reason, l.Path)
	}
	tree, _, err = c.ws.Without(ctx, tree, c.ws.StartTree, func(path string) bool { return paths[path] })
	return tree, err
}

// describe records the change's fingerprints and folders in the receipt.
func (c *checkout) describe(ctx context.Context) error {
	r := &c.Receipt
	diff, err := c.ws.Diff(ctx, c.ws.StartTree, r.EndTree, maxDiff)
	if err != nil {
		return err
	}
	r.Change, r.ChangeWords = simhash.Fingerprint(diff), simhash.Words(diff)
	r.Put, r.Took = policy.ChangedLines(diff)
	base, err := c.base(ctx)
	if err != nil {
		return err
	}
	if !c.ws.Same(base, c.ws.StartTree) {
		diff, err = c.ws.Diff(ctx, base, r.EndTree, maxDiff)
		if err != nil {
			return err
		}
	}
	r.Folders = policy.Folders(diff)
	deleted, edited, added, err := c.ws.Paths(ctx, base, r.EndTree)
	if err != nil {
		return err
	}
	r.Instructs = policy.Instructing(slices.Concat(deleted, edited, added))
	r.Whole = simhash.Fingerprint(diff)
	r.Added = strings.Count(diff, "\n+") - strings.Count(diff, "\n+++ ")
	return nil
}

func (c *checkout) commit(subject render.Title, body, tree string, parents ...string) git.CommitSpec {
	return git.CommitSpec{
		Tree:       tree,
		Parents:    parents,
		Name:       c.Author,
		Email:      c.Email,
		When:       c.Env.Now(),
		Subject:    subject,
		Body:       body,
		SigningKey: c.SigningKey,
	}
}

// pushRaces limits how often one push merges others' commits.
const pushRaces = 3

// Push moves the thread's branch forward and merges others' commits. After a conflict, Push stores the work on a
// separate branch, and another attempt starts from the others' commits.
func (c *checkout) Push(ctx context.Context) (err error) {
	g := c.Ground
	if err := g.spare(ctx, c.State.Snapshot.DefaultBranch); err != nil {
		return err
	}
	old := g.Tip
	for race := 0; ; race++ {
		there, err := c.reached(ctx, old)
		if err != nil {
			return err
		}
		if there {
			break
		}
		if err := c.Lease.Record(ctx, thread.KindActStarted, c.pushOf(g.Branch)); err != nil {
			return err
		}
		crash.Point("push_begun")
		err = g.authorised(ctx, func() error {
			if err := c.CheckEnded(ctx); err != nil {
				return err
			}
			return g.cache.Push(ctx, g.remote, c.Receipt.Commit, g.Branch, c.onto(old))
		})
		if err == nil {
			break
		}
		if !errors.Is(err, git.ErrRejected) || race == pushRaces {
			return err
		}
		if c.Decision.Round > 0 {
			return errMoved
		}
		if old, err = c.merge(ctx, old); err != nil {
			return err
		}
		if len(c.Receipt.Verify) > 0 { // the merge commit needs its own verification
			if c.Receipt.Verify, err = c.Verify(ctx); err != nil {
				return err
			}
		}
	}
	c.Receipt.Pushed = true
	crash.Point("pushed")
	err = c.Lease.Record(ctx, thread.KindActDone, c.pushOf(g.Branch))
	crash.Point("push_logged")
	return err
}

// onto returns the commit from which a push may move the branch, usually its tip. For a round of a watch, it is the
// commit on which the round began: after a reset, a push from the tip would restore removed commits.
func (c *checkout) onto(tip string) string {
	if c.Decision.Round > 0 {
		return cmp.Or(c.Base, tip)
	}
	return tip
}

// reached reports whether a branch already contains the work. It returns an error if the work is on another machine.
func (c *checkout) reached(ctx context.Context, old string) (bool, error) {
	if old == "" && c.ws != nil { // no branch yet, and this machine has the work
		return false, nil
	}
	there, err := c.Ground.cache.IsAncestor(ctx, c.Receipt.Commit, cmp.Or(old, c.Ground.Start))
	return there && old != "", err
}

func (c *checkout) pushOf(branch string) thread.Act {
	return thread.Act{Key: thread.PushKey(branch, c.Receipt.Commit), SHA: c.Receipt.Commit}
}

func (c *checkout) PushKept(ctx context.Context, branch string) error {
	if err := c.Lease.Record(ctx, thread.KindActStarted, c.pushOf(branch)); err != nil {
		return err
	}
	if err := c.pushNew(ctx, branch); err != nil {
		return err
	}
	return c.Lease.Record(ctx, thread.KindActDone, c.pushOf(branch))
}

// PushUnfinished stores the commit under the thread's private reference.
func (c *checkout) PushUnfinished(ctx context.Context) error {
	return c.Ground.pushSide(ctx, c.Thread, c.Receipt.Commit)
}

func (c *checkout) pushNew(ctx context.Context, branch string) error {
	g := c.Ground
	return g.authorised(ctx, func() error { return g.cache.Push(ctx, g.remote, c.Receipt.Commit, branch, "") })
}

// pushSeparately pushes the work to a separate branch and returns an error with the reason and the branch.
func (c *checkout) pushSeparately(ctx context.Context, why string) error {
	if err := c.pushNew(ctx, c.keptBranch()); err != nil {
		return err
	}
	return fmt.Errorf("%s; the work is kept on %s", why, c.keptBranch())
}

// merge merges others' commits with the attempt's work. It refuses after a force-push, because a merge would restore
// removed commits.
func (c *checkout) merge(ctx context.Context, old string) (theirs string, err error) {
	g := c.Ground
	if theirs, err = g.tip(ctx); err != nil {
		return "", err
	}
	if theirs == "" {
		return "", fmt.Errorf("branch %s was deleted during the attempt", g.Branch)
	}
	if old != "" {
		forward, err := g.cache.Holds(ctx, theirs, old)
		if err != nil {
			return "", err
		}
		if !forward {
			return "", c.pushSeparately(ctx, fmt.Sprintf("another user force-pushed %s during the attempt, from %.10s to %.10s", g.Branch, old, theirs))
		}
	}
	tree, conflicts, err := g.cache.Merge(ctx, theirs, c.Receipt.Commit)
	if err != nil {
		return "", err
	}
	if len(conflicts) > 0 {
		return "", c.pushSeparately(ctx, fmt.Sprintf("another user pushed to %s during the attempt, and it conflicts (%s)", g.Branch, conflicts[0]))
	}
	c.Receipt.Commit, err = g.cache.Commit(ctx, c.commit(render.Subject(fmt.Sprintf("Merge what was pushed to %s during the attempt", g.Branch), maxSubject), "", tree, theirs, c.Receipt.Commit))
	if err != nil {
		return "", err
	}
	c.Receipt.EndTree, c.Receipt.Merged = tree, true
	c.Receipt.Reasons = append(c.Receipt.Reasons, "another user pushed to "+g.Branch+" during the attempt; both were merged")
	return theirs, nil
}
