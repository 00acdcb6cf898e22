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

// paced returns a rig. Each call of later advances its clocks by one more minute than the last. Otherwise, remarks
// would arrive as fast as a program's.
func paced(t *testing.T) (r *rig, start, later func()) {
	t.Helper()
	r = newRig(t, nil)
	var pause time.Duration
	return r, r.Start, func() {
		pause += time.Minute
		r.Clock.Reach(r.Clock.Now().Add(pause))
	}
}
