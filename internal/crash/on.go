//go:build crashpoints

package crash

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// plan is read from the environment at the first point.
var plan = sync.OnceValue(func() *plans { return read(os.Getenv) })

// plans holds the actions at this process's points.
type plans struct {
	mu          sync.Mutex
	kill, pause *visit
	chance      *rand.Rand // nil without random mode
	probability float64
	ahead       time.Duration
}

// visit is the n-th time that the process passes a point.
type visit struct {
	name string
	left int
}

// read parses the environment. It panics on errors, because a test would otherwise pass without its crash.
func read(env func(string) string) *plans {
	p := &plans{kill: parse(env("PAWL_CRASH_AT")), pause: parse(env("PAWL_PAUSE_AT"))}
	if text := env("PAWL_CRASH_CLOCK"); text != "" {
		ahead, err := time.ParseDuration(text)
		if err != nil {
			panic(fmt.Sprintf("PAWL_CRASH_CLOCK=%s: %v", text, err))
		}
		p.ahead = ahead
	}
	if text := env("PAWL_CRASH_RANDOM"); text != "" {
		first, second, _ := strings.Cut(text, ",")
		seed, noSeed := strconv.ParseUint(first, 10, 64)
		probability, noNumber := strconv.ParseFloat(second, 64)
		if noSeed != nil || noNumber != nil {
			panic(fmt.Sprintf("PAWL_CRASH_RANDOM=%s: want seed,probability", text))
		}
		p.chance, p.probability = rand.New(rand.NewPCG(seed, 0)), probability
	}
	return p
}

func parse(text string) *visit {
	if text == "" {
		return nil
	}
	name, count, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(cmp.Or(count, "1"))
	if err != nil || n < 1 {
		panic(fmt.Sprintf("crash point %s: want name or name:n", text))
	}
	return &visit{name, n}
}

// Point ends or pauses the process if planned, and reports that on standard error.
func Point(name string) {
	p := plan()
	p.mu.Lock()
	defer p.mu.Unlock() // a killed process keeps the lock
	if p.pause.comes(name) {
		send("paused", name, syscall.SIGSTOP)
	}
	if p.kill.comes(name) || p.chance != nil && p.chance.Float64() < p.probability {
		send("killed", name, syscall.SIGKILL)
		select {}
	}
}

func (v *visit) comes(name string) bool {
	if v == nil || v.name != name {
		return false
	}
	v.left--
	return v.left == 0
}

// send signals the current thread, since another thread might take a signal to the process first.
func send(what, name string, sig syscall.Signal) {
	fmt.Fprintf(os.Stderr, "{\"message\":\"%s at a crash point\",\"point\":%q}\n", what, name)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Tgkill(os.Getpid(), unix.Gettid(), sig); err != nil {
		panic(err)
	}
}

// Clock returns the clock, moved ahead by PAWL_CRASH_CLOCK.
func Clock(now func() time.Time) func() time.Time {
	ahead := plan().ahead
	return func() time.Time { return now().Add(ahead) }
}
