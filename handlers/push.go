package handlers

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/solver/thread"
)

// Push logs a push for its branch's thread, for /pawl why. On other branches the base of Pawl's pull requests may
// have moved; on the default branch the push may revert Pawl's work. A changed repository configuration is checked.
type Push struct{ handler }

func push(p *payload) (all []Activity) {
	branch, isBranch := strings.CutPrefix(p.Ref, "refs/heads/")
	if !isBranch || p.Deleted {
		return nil
	}
	if p.changesConfig() {
		all = append(all, Activity{Repo: p.repo(), What: configured{commit: p.After}})
	}
	moved := thread.Change{What: "head_moved", By: p.Sender.Login, Detail: p.After}
	if n, own := issueOfBranch(branch); own {
		return append(all, Activity{Repo: p.repo(), Number: n, URL: p.Compare, What: Changed{Change: &moved}})
	}
	if branch == p.Repo.DefaultBranch {
		all = append(all, revertingPush(p)...)
	}
	moved.What = "base_moved"
	return append(all, Activity{Repo: p.repo(), What: baseMoved{base: branch, change: moved}})
}

// decide wakes the threads of Pawl's open pull requests whose base has moved, once per policy.update_every.
func (b baseMoved) decide(ctx context.Context, h *Handlers, it Activity, guid string) (string, error) {
	every := h.Solver.Env.Current().Policy.UpdateEvery
	if every <= 0 {
		return "bases are not followed (policy.update_every)", nil
	}
	known, err := h.Store.ThreadsOf(ctx, it.Repo.Owner, it.Repo.Name)
	if err != nil || len(known) == 0 {
		return "Pawl does not work on " + it.Repo.FullName(), err
	}
	pulls, err := h.Forge.PullRequests.Into(ctx, it.Repo, b.base)
	if isAny(err, forge.ErrNotFound, forge.ErrForbidden, forge.ErrUninstalled) {
		return "its pull requests cannot be read: " + err.Error(), nil
	}
	if err != nil {
		return "", fmt.Errorf("open pull requests into %s: %w", b.base, err)
	}
	logged := 0
	for _, p := range pulls {
		if _, own := issueOfBranch(p.Head.Ref); !own {
			continue
		}
		t, err := h.Store.Resolve(ctx, thread.ID{Owner: it.Repo.Owner, Name: it.Repo.Name, Number: p.Number})
		if err != nil {
			return "", err
		}
		if t.Number == p.Number { // not in any log as Pawl's
			continue
		}
		c, now := b.change, h.Now()
		c.Number, c.Delivery = p.Number, guid
		key := fmt.Sprintf("base_moved:%d:%s", p.Number, now.UTC().Truncate(every).Format(time.RFC3339Nano))
		n, err := h.Store.Append(ctx, t, true, thread.NewEvent{Key: key, Kind: thread.KindThread, At: now, Data: c})
		if err != nil {
			return "", err
		}
		logged += n
	}
	return fmt.Sprintf("base_moved: logged for %d threads", logged), nil
}
