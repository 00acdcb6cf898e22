package main

import (
	"testing"
	"time"

	"github.com/pawlbot/pawl/internal/fakegithub"
	"github.com/pawlbot/pawl/internal/testrig"
)

// rig is internal/testrig's rig with helpers for this package.
type rig struct{ *testrig.Rig }

func newRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	return &rig{testrig.New(t, files)}
}

func newProcessRig(t *testing.T, files map[string]string) *rig {
	t.Helper()
	return &rig{testrig.NewProcess(t, files)}
}

// newRigAt is newRig with a clock for the fake GitHub and other changes to its options.
func newRigAt(t *testing.T, files map[string]string, now func() time.Time, change ...func(*fakegithub.Options)) *rig {
	t.Helper()
	return &rig{testrig.NewAt(t, files, now, change...)}
}

func TestMain(m *testing.M) { testrig.Main(m) }
