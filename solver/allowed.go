package solver

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// fresh is how long after a person asked for something their permission is not asked for again.
const fresh = 5 * time.Minute

// waited reports whether everything that an attempt is to do was asked for long before it begins: it waited, or was tried.
func waited(s *step, p policy.Purpose) bool {
	return !slices.ContainsFunc(s.state.Work(s.state.Seq, p), func(r thread.Request) bool { return s.Now().Sub(r.At) < fresh })
}

// allowed asks again whether somebody for whom the work is done may still write to the repository: before an attempt
// that waited begins, before its work is pushed, and before each later act for them (may). Those are the people among who
// asked for it, else whoever asked last for a change: machines only go on with it. Where nobody of them may, it is
// ErrRevoked, and what they asked for is withdrawn. What no person ever asked for is not asked about.
func (p *publisher) allowed(ctx context.Context, work []thread.Request) error {
	machines := func(r thread.Request) bool { return r.By.Login == "" || r.By.Bot() }
	lost := thread.Withdrawn{Reason: attempt.ErrRevoked.Error()}
	people := slices.DeleteFunc(slices.Clone(work), machines)
	for _, r := range people {
		lost.Seqs = append(lost.Seqs, r.Seq)
	}
	if len(people) == 0 {
		for _, r := range slices.Backward(p.state.Feedback) {
			if !machines(r) && r.Purpose == policy.ToChange && (r.Withdrawn == "" || r.Withdrawn == lost.Reason) {
				people = append(people, r)
				break
			}
		}
	}
	if len(people) == 0 {
		return nil
	}
	asked := map[string]bool{}
	for _, r := range people {
		if asked[r.By.Login] {
			continue
		}
		asked[r.By.Login] = true
		permission, err := p.Host.permission(ctx, p, r.By.Login)
		if err != nil || feedback.Writes(permission) {
			return err
		}
	}
	if len(lost.Seqs) > 0 {
		return errors.Join(p.lease.Record(ctx, thread.KindWithdrawn, lost), attempt.ErrRevoked)
	}
	return attempt.ErrRevoked
}

// may asks before Pawl does with the pushed work what it was asked for: opens the pull request, marks it as ready, asks
// for a review, resolves remarks. It is false without an error where the log says already that nobody may.
func (p *publisher) may(ctx context.Context) (bool, error) {
	s := p.state
	if d := s.Decision; d != nil && d.Rule == policy.RuleRevoked && !s.Open() {
		return false, nil
	}
	last := thread.LastChange(s).N
	s.Attempts = slices.DeleteFunc(slices.Clone(s.Attempts), func(a thread.Attempt) bool { return a.N >= last })
	err := p.allowed(ctx, s.Work(s.Seq, policy.ToChange)) // what the last attempt had to do, and what came since
	return err == nil, err
}

func (s *step) mayPush(ctx context.Context) error {
	return s.allowed(ctx, s.state.Work(s.state.Seq, policy.ToChange))
}

func (GitHub) permission(ctx context.Context, p *publisher, login string) (string, error) {
	permission, err := p.Forge.Permission(ctx, p.repo(), login)
	if errors.Is(err, forge.ErrNotFound) {
		return "none", nil
	}
	return permission, err
}

// Folder is worked on by whoever owns it.
func (Folder) permission(context.Context, *publisher, string) (string, error) { return "admin", nil }
