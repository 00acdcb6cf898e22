package server_test

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/testrig"
)

// rig is internal/testrig's world with this package's checks.
type rig struct{ *testrig.Rig }

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	return &rig{testrig.New(t, files)}
}

func TestMain(m *testing.M) { testrig.Main(m) }

// paced returns a rig. later moves its clocks by one minute, then by two, and so on. Without these pauses, remarks
// would look like a program's.
func paced(t *testing.T) (r *rig, start, later func()) {
	t.Helper()
	r = newRig(t, nil)
	var pause time.Duration
	return r, r.Start, func() {
		pause += time.Minute
		r.Clock.Reach(r.Clock.Now().Add(pause))
	}
}
