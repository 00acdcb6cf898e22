package config

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
)

type Sandbox struct {
	Mode     string   `yaml:"mode"`
	Network  string   `yaml:"network"` // see Walled
	ReadOnly []string `yaml:"read_only"`
	// Limits of each agent, setup, verify command and judge. Zero means no limit.
	Memory Bytes   `yaml:"memory"`
	CPUs   float64 `yaml:"cpus"`
	PIDs   int     `yaml:"pids"`
	Disk   Bytes   `yaml:"disk"`
}

const (
	SandboxAuto = "auto" // start only with bubblewrap
	SandboxPod  = "pod"  // run agents as Pawl's user, in a Kubernetes pod with one worker
	SandboxNone = "none" // run agents as Pawl's user
)

// Bare reports whether agents run without bubblewrap.
func (s Sandbox) Bare() bool { return s.Mode == SandboxPod || s.Mode == SandboxNone }

// Bytes is a size such as 512MiB, 8GiB or plain digits.
type Bytes int64

func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > mostBytes {
		return errors.New("is not a size; write a number with a unit, such as 512MiB or 8GiB")
	}
	*b = Bytes(n)
	return nil
}

// mostBytes exceeds the memory and disk of any machine and fits an int64.
const mostBytes = 1 << 50

// Smaller limits keep the smallest agent from starting.
const (
	leastMemory Bytes = 256 << 20
	leastCPUs         = 0.1
	leastPIDs         = 64
)

// atLeast adds a problem if a limit is below least. Zero is valid: it means no limit.
func atLeast[T cmp.Ordered](s *source, key string, value, least T) {
	var none T
	s.addIf(
		value != none && value < least,
		key,
		"%s is too little for any agent; use at least %s, or 0 for no limit",
		s.found(key),
		fmt.Sprint(least),
	)
}

func (b Bytes) String() string { return humanize.IBytes(uint64(b)) }
