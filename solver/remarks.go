package solver

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/checkrun"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// publishRemarks answers remarks on lines in their threads with what the last attempt said of each, and resolves those
// whose remark was done: the agent says so, the lines changed since, and the work was verified. What the agent declined
// stays open. Whoever made an answered remark is asked for another review.
func (p *publisher) publishRemarks(ctx context.Context, v checkrun.Facts) error {
	number := p.state.Pull
	if p.state.Snapshot.Pull {
		number = p.thread.Number
	}
	if number == 0 || p.state.Closed != "" || v.State == checkrun.Running || len(p.state.Attempts) == 0 {
		return nil
	}
	last := p.state.Attempts[len(p.state.Attempts)-1]
	owed := slices.DeleteFunc(slices.Clone(last.Receipt.Remarks), func(a policy.RemarkAnswer) bool {
		return p.state.Acts[thread.RemarkKey(last.N, a.ID)].Done
	})
	if last.EndedAt.IsZero() || len(owed) == 0 {
		return nil
	}
	d, err := forge.Discussions{Client: p.Forge}.Read(ctx, p.repo(), number, 0)
	if err != nil {
		return err
	}
	_, verified := last.Receipt.Verified()
	verified = verified && v.State == checkrun.Done && last.Receipt.Pushed
	for _, a := range owed {
		if err := p.answerRemark(ctx, number, last.N, a, d.Threads.Nodes, verified); err != nil {
			return err
		}
	}
	for _, a := range owed {
		i := threadOf(d.Threads.Nodes, a.ID)
		if i < 0 || v.State != checkrun.Done {
			continue
		}
		if by := d.Threads.Nodes[i].Opening.Nodes[0].By; !by.Bot() && by.Account() != "" {
			if err := p.askAgain(ctx, number, last.N, by.Account()); err != nil {
				return err
			}
		}
	}
	return nil
}

// threadOf is the thread that holds a remark, -1 for none.
func threadOf(threads []forge.ReviewThread, id int64) int {
	return slices.IndexFunc(threads, func(t forge.ReviewThread) bool {
		return len(t.Opening.Nodes) > 0 && slices.ContainsFunc(append(t.Opening.Nodes[:1:1], t.Comments.Nodes...), func(s forge.Said) bool { return int64(s.ID) == id })
	})
}

// answerRemark answers one remark. An id that names no remark of this pull request is the agent's mistake.
func (p *publisher) answerRemark(ctx context.Context, number, n int, a policy.RemarkAnswer, threads []forge.ReviewThread, verified bool) error {
	key, mark := thread.RemarkKey(n, a.ID), fmt.Sprintf("<!-- pawl:remark %s %d %d -->", p.thread, n, a.ID)
	i := threadOf(threads, a.ID)
	if i < 0 {
		return p.acted(ctx, key, thread.Act{Note: "no such remark"})
	}
	t := threads[i]
	said := slices.ContainsFunc(t.Comments.Nodes, func(s forge.Said) bool {
		return s.By.Account() == p.app.BotLogin && strings.Contains(s.Text, mark)
	})
	done := !a.Declined && verified && t.Outdated && !t.Resolved
	if !said {
		body := checkrun.RemarkAnswer(a, done)
		p.says(ctx, body)
		err := forge.Pulls{Client: p.Forge}.Reply(ctx, p.repo(), number, int64(t.Opening.Nodes[0].ID), body+"\n\n"+mark)
		if errors.Is(err, forge.ErrForbidden) || errors.Is(err, forge.ErrInvalid) || p.deleted(ctx, err) {
			return p.settled(ctx, key, thread.Act{}, err)
		}
		if err != nil {
			return err
		}
	}
	if done {
		if err := (forge.Pulls{Client: p.Forge}).Resolve(ctx, p.repo(), t.ID); err != nil && !errors.Is(err, forge.ErrForbidden) && !errors.Is(err, forge.ErrInvalid) && !errors.Is(err, forge.ErrNotFound) {
			return err
		}
	}
	return p.acted(ctx, key, thread.Act{})
}

// askAgain asks somebody whose remark was answered for another review, once after each attempt.
func (p *publisher) askAgain(ctx context.Context, number, n int, login string) error {
	key := thread.ReviewAgainKey(n, login)
	if p.state.Acts[key].Done {
		return nil
	}
	err := forge.Pulls{Client: p.Forge}.RequestReview(ctx, p.repo(), number, login)
	return p.settled(ctx, key, thread.Act{}, err)
}
