package config

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/dustin/go-humanize"
)

type Sandbox struct {
	Mode    string `yaml:"mode"`    // SandboxAuto or SandboxNone
	Network string `yaml:"network"` // NetworkWalled or NetworkOpen; see Walled
	// ReadOnly are folders and files that every agent can read: where agents are
	// installed outside /usr, tool chains, caches. Nothing in them is secret.
	ReadOnly []string `yaml:"read_only"`
	// What each agent, setup, verify command and judge may use. Zero is no limit.
	Memory Bytes   `yaml:"memory"`
	CPUs   float64 `yaml:"cpus"`
	PIDs   int     `yaml:"pids"` // processes and threads
	Disk   Bytes   `yaml:"disk"` // of what it writes, without /tmp, which is memory
}

const (
	SandboxAuto = "auto" // bubblewrap; refuse to start where it cannot work
	SandboxNone = "none" // run agents as the user that runs Pawl
)

// Bytes is a size, written as 512MiB, 8GiB or plain digits.
type Bytes int64

func (b *Bytes) UnmarshalText(text []byte) error {
	n, err := humanize.ParseBytes(string(text))
	if err != nil || n > mostBytes {
		return errors.New("is no size; write a number with a unit, such as 512MiB or 8GiB")
	}
	*b = Bytes(n)
	return nil
}

// mostBytes is more than any machine has, and fits an int64.
const mostBytes = 1 << 50

// Below these the sandbox itself and the smallest of the agents do not start.
const (
	leastMemory Bytes = 256 << 20
	leastCPUs         = 0.1
	leastPIDs         = 64
)

// atLeast complains of a limit that lets nothing run; zero is no limit.
func atLeast[T cmp.Ordered](s *source, key string, value, least T) {
	var none T
	s.addIf(
		value != none && value < least,
		key,
		"%s is too little for any agent; give it %s or more, or 0 for no limit",
		s.found(key),
		fmt.Sprint(least),
	)
}

func (b Bytes) String() string { return humanize.IBytes(uint64(b)) }
