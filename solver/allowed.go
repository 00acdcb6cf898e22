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

// allowed asks again, before an attempt that waited begins and before its work is pushed, whether somebody who asked
// for it may still write to the repository. Where nobody may, what they asked for is withdrawn. What no person asked
// for is not asked about.
func allowed(ctx context.Context, s *step, p policy.Purpose) error {
	lost := thread.Withdrawn{Reason: attempt.ErrRevoked.Error()}
	may := map[string]bool{}
	for _, r := range s.state.Work(s.state.Seq, p) {
		if r.By.Login == "" || r.By.Bot() {
			return nil
		}
		if _, asked := may[r.By.Login]; !asked {
			permission, err := s.Host.permission(ctx, s.publisher, r.By.Login)
			if err != nil {
				return err
			}
			if feedback.Writes(permission) {
				return nil
			}
			may[r.By.Login] = false
		}
		lost.Seqs = append(lost.Seqs, r.Seq)
	}
	if len(lost.Seqs) == 0 {
		return nil
	}
	return errors.Join(s.lease.Record(ctx, thread.KindWithdrawn, lost), attempt.ErrRevoked)
}

func (s *step) mayPush(ctx context.Context) error { return allowed(ctx, s, policy.ToChange) }

func (GitHub) permission(ctx context.Context, p *publisher, login string) (string, error) {
	permission, err := p.Forge.Permission(ctx, p.repo(), login)
	if errors.Is(err, forge.ErrNotFound) {
		return "none", nil
	}
	return permission, err
}

// Folder is worked on by whoever owns it.
func (Folder) permission(context.Context, *publisher, string) (string, error) { return "admin", nil }
