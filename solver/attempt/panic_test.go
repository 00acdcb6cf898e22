package attempt

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/pawlbot/pawl/policy"
)

func TestPanicInTheBackgroundEndsTheAttempt(t *testing.T) {
	run, end := context.WithCancelCause(t.Context())
	a := &Attempt{}
	a.guarded(end, func() { panic("nil map") })()
	early, ok := errors.AsType[cut](context.Cause(run))
	if !ok || early.ending != policy.Crashed || !strings.Contains(early.why, "nil map") {
		t.Errorf("the attempt ended by %v", context.Cause(run))
	}
}
