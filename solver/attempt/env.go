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

// Env holds what all attempts of a process share. Every field before Gateway is required.
type Env struct {
	Store thread.Store
	// Config is the configuration at the start; Current returns the reloaded configuration.
	Config  config.Server
	Sandbox *sandbox.Sandbox
	Layers  *ground.Store
	Images  *ground.Images
	// Node names this process in leases. Place names its data folder: only there can sessions continue.
	Node, Place string
	Now         func() time.Time
	Log         zerolog.Logger
	Lookup      func(name string) (string, bool)
	// Gateway connects agents to models; nil if no backend names a provider.
	Gateway *gateway.Gateway
	// Program is the path of Pawl, which serves the agents' test tool; empty for no tool.
	Program string
	// OnAttempt and OnReceipt report logged attempts to metrics. They may be nil and must not block.
	OnAttempt func(backend string, ending policy.Ending, outcome policy.Outcome)
	OnReceipt func(backend string, r policy.Receipt)
	// OnPrepare receives each setup or verify command, then an empty string; it may be nil.
	OnPrepare func(what string)
	// OnBegin receives each attempt, OnEvent the agent's events without keys and with relative paths. Plain output
	// arrives as one message per line. Both may be nil; OnEvent is called concurrently.
	OnBegin func(thread.Started)
	OnEvent func(agent.Event)
	// Stopping closes when the server begins to stop. New attempts do not start; running attempts are handed over.
	// Nil disables handovers.
	Stopping chan struct{}

	tokens sync.Map // attempts' tokens by folder
	bays   sync.Map // verification folders in use
	// folders lets only one attempt of this process use a thread's folder at a time. A step that lost its lease may
	// still be ending its agent.
	folders  wait.Turns
	reloaded atomic.Pointer[config.Server]
}

// Contents of a thread's folder. HOME and checkout keep their paths, because continued sessions remember them. Each
// attempt has its own output folder.
const (
	homeDir        = "home"
	workDir        = "work"
	transcriptFile = "transcript"
)

// ProcessPrefix returns the prefix of this data directory's processes, by which a new server finds and ends old ones.
func (e *Env) ProcessPrefix() string { return e.Config.DataDir + ":" }

func (e *Env) threadDir(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "attempts", t.Owner, t.Name, strconv.Itoa(t.Number))
}

func (e *Env) attemptDir(t thread.ID, n int) string {
	return filepath.Join(e.threadDir(t), strconv.Itoa(n))
}

// TranscriptIn returns the path of an attempt's transcript.
func TranscriptIn(dataDir string, t thread.ID, n int) string {
	return filepath.Join(dataDir, "attempts", t.Owner, t.Name, strconv.Itoa(t.Number), strconv.Itoa(n), transcriptFile)
}

func (e *Env) homeOf(t thread.ID) string { return filepath.Join(e.threadDir(t), homeDir) }

// Sandbox paths of the checkout and HOME. They never change, because build tools store them in layers.
const (
	insideWork = "/pawl/work"
	insideHome = "/pawl/home"
)

// inside returns the paths that programs see.
func (e *Env) inside(work, home string) (string, string) {
	if e.Sandbox.Mode() == sandbox.None {
		return work, home
	}
	return insideWork, insideHome
}

func (e *Env) workOf(t thread.ID) string { return filepath.Join(e.threadDir(t), workDir) }

func (e *Env) verifyDir(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "verify", t.Owner, t.Name)
}

// bay returns a free verification folder. Folders are reused because build caches contain their paths.
func (e *Env) bay(t thread.ID) (dir string, leave func()) {
	for n := 0; ; n++ {
		dir = filepath.Join(e.verifyDir(t), strconv.Itoa(n))
		if _, used := e.bays.LoadOrStore(dir, true); !used {
			return dir, func() { e.bays.Delete(dir) }
		}
	}
}

// Room returns an error while the disk is too full. Steps wait instead of failing, which would count against the
// thread.
func (e *Env) Room() error {
	left, full, err := e.free()
	if err != nil || !full {
		return err
	}
	return fmt.Errorf("no attempt starts, because the disk of data_dir %s is full (%s are left); make room there, and attempts continue by themselves",
		e.Config.DataDir, left)
}

// A disk is full below leastRoom or leastFiles; on a small disk, below 1/fullDisk of its size. Our choice.
const (
	leastRoom  = 64 << 20 // bytes
	leastFiles = 4096     // inodes
	fullDisk   = 20
)

// free returns the remaining space and reports whether the disk is full.
func (e *Env) free() (left string, full bool, err error) {
	var disk unix.Statfs_t
	if err := unix.Statfs(e.Config.DataDir, &disk); err != nil {
		return "", false, fmt.Errorf("free space of %s: %w", e.Config.DataDir, err)
	}
	size := uint64(disk.Bsize)
	if disk.Bavail*size < min(leastRoom, disk.Blocks*size/fullDisk) {
		return fmt.Sprintf("%d KiB", disk.Bavail*size>>10), true, nil
	}
	// File systems without an inode limit report 0.
	return fmt.Sprintf("%d inodes", disk.Ffree), disk.Ffree < min(leastFiles, disk.Files/fullDisk), nil
}

// makeRoom removes a thread's HOME, and unused layers and images, after an attempt that left the disk full. The next
// attempt starts a new session.
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

func (e *Env) cloneOf(t thread.ID) string {
	return filepath.Join(e.Config.DataDir, "repos", t.Owner, t.Name+".git")
}

// Mend replaces a damaged clone if the error can be explained by damage; see git.Mend.
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

// CleanAttempts removes the transcripts of attempts that ended before a time, and folders of threads without
// transcripts. HOME lives for a day after the last attempt. before must be at least a day ago.
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
		err = errors.Join(err, threadErr) // continue after an error
	}
	return removed, err
}

func cleanVerified(dataDir string, before time.Time) error {
	kept, err := filepath.Glob(filepath.Join(dataDir, "verify", "*", "*", "[^0-9]*"))
	for _, path := range kept {
		if info, statErr := os.Stat(path); statErr == nil && info.ModTime().Before(before) {
			err = errors.Join(err, git.Remove(path))
		}
	}
	return err
}

// CleanWork removes the files of killed attempts before new attempts begin. It keeps and returns threads whose logged
// attempt runs on this node.
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

// lookAtFolder limits the wait for a folder in use.
const lookAtFolder = time.Second

// CleanWorkOf removes killed attempts' files. It returns the threads to try again.
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

// cleanWorkOf removes a thread's files of killed attempts. gone is false if they must be removed later.
func (e *Env) cleanWorkOf(ctx context.Context, t thread.ID) (gone bool, err error) {
	look, cancel := context.WithTimeout(ctx, lookAtFolder)
	defer cancel()
	leave, err := e.folders.Take(look, t)
	if err != nil {
		return false, context.Cause(ctx) // an attempt uses the folder
	}
	defer leave()
	events, err := e.Store.Events(ctx, t, 0)
	if err != nil || e.runsHere(events) {
		return false, err
	}
	err = clean(e.workOf(t))
	return err == nil, err
}

// runsHere reports whether the last logged attempt runs on this node.
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

// homeTime is how long HOME is kept for its session after the last attempt. Its build caches can be large.
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

// Current returns the configuration in force. Steps and attempts keep the one they began with.
func (e *Env) Current() *config.Server {
	if c := e.reloaded.Load(); c != nil {
		return c
	}
	return &e.Config
}

// Use sets the configuration of new steps and attempts.
func (e *Env) Use(c *config.Server) { e.reloaded.Store(c) }
