package solver

import (
	"context"
	"errors"

	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/policy/feedback"
	"github.com/pawlbot/pawl/solver/attempt"
	"github.com/pawlbot/pawl/solver/thread"
)

// allowed asks again, before the work of an attempt is pushed, whether somebody who asked for it may still write to the
// repository. Where nobody may, what they asked for is withdrawn. What no person asked for is not asked about.
func (s *step) allowed(ctx context.Context) error {
	lost := thread.Withdrawn{Reason: attempt.ErrRevoked.Error()}
	may := map[string]bool{}
	for _, r := range s.state.Work(s.state.Seq, policy.ToChange) {
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

func (GitHub) permission(ctx context.Context, p *publisher, login string) (string, error) {
	permission, err := p.Forge.Permission(ctx, p.repo(), login)
	if errors.Is(err, forge.ErrNotFound) {
		return "none", nil
	}
	return permission, err
}

// Folder is worked on by whoever owns it.
func (Folder) permission(context.Context, *publisher, string) (string, error) { return "admin", nil }
