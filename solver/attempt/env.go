package attempt

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/wait"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

// Env is shared by all attempts of a process. Every field before Gateway is required.
type Env struct {
	Store thread.Store
	// Config is the configuration at the start, for keys that no reload changes. Current has the others.
	Config  config.Server
	Sandbox *sandbox.Sandbox
	Layers  *ground.Store
	Images  *ground.Images
	// Node names this process in leases. Place is its folder: an agent's session can be continued only there.
	Node, Place string
	Now         func() time.Time
	Log         zerolog.Logger
	// Lookup returns the environment variables that backends may name.
	Lookup func(name string) (string, bool)
	// Gateway is the agents' way to their models; nil if no backend names a provider.
	Gateway *gateway.Gateway
	// Program is the path of Pawl itself, the agents' test tool; empty for none.
	Program string
	// OnAttempt and OnReceipt get what was logged, for metrics; they may be nil and must not block.
	OnAttempt func(backend string, ending policy.Ending, outcome policy.Outcome)
	OnReceipt func(backend string, r policy.Receipt)
	// OnPrepare gets the running command of a setup or a verification, and empty after it; it may be nil.
	OnPrepare func(what string)
	// OnBegin gets each attempt that begins. OnEvent gets the events of its agent's output, and of a program without
	// structure each line as a message, without keys and with relative paths. OnEvent is called concurrently. Both may
	// be nil.
	OnBegin func(thread.Started)
	OnEvent func(agent.Event)
	// Stopping is closed when the server begins to stop: no attempt begins any more, and running ones are handed
	// over. Nil if no process continues them.
	Stopping chan struct{}

	held sync.Map // attempts' tokens, by folder
	bays sync.Map // verification folders in use
	// folders lets one attempt of this process use a thread's folder at a time. The lease already ensures that,
	// except while a step that lost it still ends its agent.
	folders  wait.Turns
	reloaded atomic.Pointer[config.Server]
}

// The contents of a thread's folder: the agent's HOME and, while it is used, the checkout. Both have the same path
// in every attempt, since a continued session remembers paths. The HOME is made again unless a session continues.
// Each attempt's output has its own folder.
const (
	homeDir        = "home"
	workDir        = "work"
	transcriptFile = "transcript"
)

// ProcessPrefix begins the names of all processes of this data directory, so that a server can end processes of an
// earlier one.
func (e *Env) ProcessPrefix() string { return e.Config.DataDir + ":" }

func (e *Env) threadDir(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "attempts", t.Owner, t.Name, strconv.Itoa(t.Number))
}

func (e *Env) attemptDir(t thread.ID, n int) string {
	return filepath.Join(e.threadDir(t), strconv.Itoa(n))
}

// TranscriptIn is the path of an attempt's transcript in a data directory.
func TranscriptIn(dataDir string, t thread.ID, n int) string {
	return filepath.Join(dataDir, "attempts", t.Owner, t.Name, strconv.Itoa(t.Number), strconv.Itoa(n), transcriptFile)
}

// homeOf is the HOME of a thread's agents, workOf their checkout.
func (e *Env) homeOf(t thread.ID) string { return filepath.Join(e.threadDir(t), homeDir) }

// The paths of the checkout and the HOME in the sandbox, in every setup, verification and attempt: build tools'
// files in a layer contain them.
const (
	insideWork = "/pawl/work"
	insideHome = "/pawl/home"
)

// inside maps a checkout and a HOME to the programs' paths.
func (e *Env) inside(work, home string) (string, string) {
	if e.Sandbox.Mode() == sandbox.None {
		return work, home
	}
	return insideWork, insideHome
}

func (e *Env) workOf(t thread.ID) string { return filepath.Join(e.threadDir(t), workDir) }

// verifyDir has a repository's bays, and the verify commands' results on bases.
func (e *Env) verifyDir(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "verify", t.Owner, t.Name)
}

// bay is the first free folder for a verification of a repository: build tools find their caches again at the same
// path.
func (e *Env) bay(t thread.ID) (dir string, leave func()) {
	for n := 0; ; n++ {
		dir = filepath.Join(e.verifyDir(t), strconv.Itoa(n))
		if _, used := e.bays.LoadOrStore(dir, true); !used {
			return dir, func() { e.bays.Delete(dir) }
		}
	}
}

// Room is an error while the disk is too full for an attempt. The step is repeated later; failing attempts would
// count and stop the run of an innocent thread.
func (e *Env) Room() error {
	left, full, err := e.free()
	if err != nil || !full {
		return err
	}
	return fmt.Errorf("no attempt starts, because the disk of data_dir %s is full (%s are left); make room there, and attempts continue by themselves",
		e.Config.DataDir, left)
}

// fullDisk: a file system counts as full below 1/fullDisk of free space or files.
const fullDisk = 20

// The free space and files below which no attempt begins even if a twentieth is more: a checkout and an agent's first
// files need more. Both are our choice.
const (
	leastRoom  = 64 << 20 // bytes
	leastFiles = 4096     // that can still be made (inodes)
)

// free is what the file system of the data directory has left, and whether it is so little that no attempt should be begun.
func (e *Env) free() (left string, full bool, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(e.Config.DataDir, &disk); err != nil {
		return "", false, fmt.Errorf("free space of %s: %w", e.Config.DataDir, err)
	}
	size := uint64(disk.Bsize)
	if disk.Bavail*size < min(leastRoom, disk.Blocks*size/fullDisk) {
		return fmt.Sprintf("%d KiB", disk.Bavail*size>>10), true, nil
	}
	// Some file systems bound no number of files, and say 0.
	return fmt.Sprintf("%d inodes", disk.Ffree), disk.Ffree < min(leastFiles, disk.Files/fullDisk), nil
}

// makeRoom removes the HOME of a thread's agents after an attempt that left the disk full. The checkout is gone
// already, but a HOME stays for its sessions and would take the room from other threads. The next attempt begins a
// new session.
func (e *Env) makeRoom(t thread.ID, log zerolog.Logger) {
	if _, full, err := e.free(); err != nil || !full {
		return
	}
	if err := git.Remove(e.homeOf(t)); err != nil {
		log.Error().Err(err).Msg("the disk is full, and the agent's HOME cannot be removed")
		return
	}
	if err := errors.Join(e.Layers.Evict(0), e.Images.Evict(0)); err != nil {
		log.Error().Err(err).Msg("the disk is full, and unused layers cannot be removed")
	}
	log.Warn().Msg("the disk is full: the agent's HOME was removed with its sessions")
}

// cloneOf is the folder of the bare clone of a thread's repository.
func (e *Env) cloneOf(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "repos", t.Owner, t.Name+".git")
}

// Mend replaces the clone of a thread's repository after an error that a damaged clone explains; see git.Mend.
func (e *Env) Mend(ctx context.Context, t thread.ID, cause error) (bool, error) {
	return git.Mend(ctx, e.cloneOf(t), cause)
}

func (e *Env) Closing() bool {
	select {
	case <-e.Stopping:
		return true
	default:
		return false
	}
}

// CleanAttempts removes the transcripts of attempts that ended before a time, and the rest of a thread once none
// remains. An agent's HOME goes a day after the last attempt. An attempt lasts a day at most, so the time must be
// at least that long ago.
func (e *Env) CleanAttempts(ctx context.Context, dataDir string, before time.Time) (removed int, err error) {
	threads, err := filepath.Glob(filepath.Join(dataDir, "attempts", "*", "*", "*"))
	if err != nil {
		return 0, fmt.Errorf("list attempts: %w", err)
	}
	err = cleanVerified(dataDir, before)
	for _, dir := range []string{"layers", "images"} {
		err = errors.Join(err, ground.Open(filepath.Join(dataDir, dir), git.Remove, e.Now).Clean(before))
	}
	if err != nil {
		return 0, err
	}
	for _, dir := range threads {
		if err := ctx.Err(); err != nil {
			return removed, context.Cause(ctx)
		}
		n, threadErr := cleanThread(dir, before, e.Now().Add(-homeTime))
		removed += n
		err = errors.Join(err, threadErr) // one failure does not keep the others
	}
	return removed, err
}

// cleanVerified removes old results of base verifications.
func cleanVerified(dataDir string, before time.Time) error {
	kept, err := filepath.Glob(filepath.Join(dataDir, "verify", "*", "*", "[^0-9]*"))
	for _, path := range kept {
		if info, statErr := os.Stat(path); statErr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, git.Remove(path))
		}
	}
	return err
}

// CleanWork removes the files of attempts whose server was killed, before any attempt begins. It keeps the threads
// with an attempt that the log has as running here, for the attempt that continues.
func (e *Env) CleanWork(ctx context.Context) (kept []thread.ID, err error) {
	root := filepath.Join(e.Config.DataDir, "attempts")
	work, err := filepath.Glob(filepath.Join(root, "*", "*", "*", workDir))
	if err != nil {
		return nil, err
	}
	old, err := filepath.Glob(filepath.Join(e.Config.DataDir, "verify", "*", "*", "[0-9]*"))
	if err != nil {
		return nil, err
	}
	threads := make([]thread.ID, 0, len(work))
	for _, path := range work {
		name := strings.Split(strings.TrimPrefix(path, root+"/"), "/")
		n, _ := strconv.Atoi(name[2])
		threads = append(threads, thread.ID{Owner: name[0], Name: name[1], Number: n})
	}
	damaged, err := filepath.Glob(git.Damaged(filepath.Join(e.Config.DataDir, "repos", "*", "*.git")))
	if err != nil {
		return nil, err
	}
	kept, err = e.CleanWorkOf(ctx, threads)
	return kept, errors.Join(err, clean(old...), clean(damaged...))
}

// lookAtFolder limits the wait for a folder that an attempt may be using.
const lookAtFolder = time.Second

// CleanWorkOf removes killed attempts' files of some threads, and returns the threads to look at again: those with
// an attempt here, and those with an error.
func (e *Env) CleanWorkOf(ctx context.Context, threads []thread.ID) (kept []thread.ID, err error) {
	for _, t := range threads {
		gone, threadErr := e.cleanWorkOf(ctx, t)
		if !gone {
			kept = append(kept, t)
		}
		err = errors.Join(err, threadErr)
	}
	return kept, err
}

// cleanWorkOf reports whether no unused file is left. No attempt of this process begins meanwhile.
func (e *Env) cleanWorkOf(ctx context.Context, t thread.ID) (gone bool, err error) {
	look, cancel := context.WithTimeout(ctx, lookAtFolder)
	defer cancel()
	leave, err := e.folders.Take(look, t)
	if err != nil {
		return false, context.Cause(ctx) // an attempt is at work there
	}
	defer leave()
	events, err := e.Store.Events(ctx, t, 0)
	if err != nil || e.runsHere(events) {
		return false, err
	}
	err = clean(e.workOf(t))
	return err == nil, err
}

// runsHere reports whether a thread's log ends with an attempt that runs on this node.
func (e *Env) runsHere(events []thread.Event) bool {
	s, err := thread.Fold(events)
	if err != nil {
		return false
	}
	a, running := s.Running()
	return running && a.Place == e.Place
}

func clean(paths ...string) error {
	for _, path := range paths {
		if err := git.Remove(path); err != nil {
			return fmt.Errorf("clean %s: %w", path, err)
		}
	}
	return nil
}

// homeTime is how long an agent's HOME is kept after its last attempt for its session: build tools' caches in it
// can be large.
const homeTime = 24 * time.Hour

func cleanThread(dir string, before, idle time.Time) (removed int, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, fmt.Errorf("clean %s: %w", dir, err)
	}
	left, newest := 0, time.Time{}
	for _, e := range entries {
		if !ofAttempt(e) {
			continue
		}
		attempt := filepath.Join(dir, e.Name())
		written, err := os.Lstat(filepath.Join(attempt, transcriptFile))
		if errors.Is(err, fs.ErrNotExist) {
			written, err = os.Lstat(attempt)
		}
		if err != nil {
			return removed, err
		}
		newest = policy.Later(newest, written.ModTime())
		if !written.ModTime().Before(before) {
			left++
			continue
		}
		if err := clean(attempt); err != nil {
			return removed, err
		}
		removed++
	}
	if left == 0 && removed > 0 {
		return removed, clean(dir)
	}
	if left > 0 && newest.Before(idle) {
		return removed, clean(filepath.Join(dir, homeDir), filepath.Join(dir, workDir))
	}
	return removed, nil
}

func ofAttempt(e fs.DirEntry) bool {
	_, err := strconv.Atoi(e.Name())
	return err == nil && e.IsDir()
}

// Current is the configuration in force. Each step and each attempt keeps its initial one.
func (e *Env) Current() *config.Server {
	if c := e.reloaded.Load(); c != nil {
		return c
	}
	return &e.Config
}

// Use sets the configuration for new steps and attempts.
func (e *Env) Use(c *config.Server) { e.reloaded.Store(c) }
