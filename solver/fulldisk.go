package solver

import (
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/git"
)

// fullDisk is the part of a file system, one in so many, below whose free space
// it counts as full.
const fullDisk = 20

// leastRoom is the free space below which no attempt is begun, in bytes, on a disk
// that is so large that a twentieth of it is more: a checkout and what agents
// write first take more than that.
const leastRoom = 64 << 20

// full reports whether no attempt should be begun on a disk.
func full(disk unix.Statfs_t) bool {
	return disk.Bavail*uint64(disk.Bsize) < min(leastRoom, disk.Blocks*uint64(disk.Bsize)/fullDisk)
}

// room is an error while the disk is so full that an attempt could only fail. The
// step is repeated later; an attempt would count, and several would stop the run
// of a thread that has filled nothing.
func (s *step) room() error {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Config.DataDir, &disk); err != nil {
		return fmt.Errorf("free space of %s: %w", s.Config.DataDir, err)
	}
	if !full(disk) {
		return nil
	}
	free := disk.Bavail * uint64(disk.Bsize)
	return fmt.Errorf("no attempt is begun, since the disk of data_dir %s is full (%d KiB are left); make room there, attempts go on by themselves",
		s.Config.DataDir, free>>10)
}

// makeRoom removes the HOME of the thread's agents after an attempt that left the
// disk full. The checkout is gone with its attempt, but a HOME stays for the
// sessions in it, and would take the room from all other threads. The next
// attempt begins a new session.
func (s *step) makeRoom() {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Config.DataDir, &disk); err != nil || !full(disk) {
		return
	}
	if err := git.Remove(s.homeOf(s.thread)); err != nil {
		s.log.Error().Err(err).Msg("the disk is full, and the agent's HOME cannot be removed")
		return
	}
	s.log.Warn().Msg("the disk is full: the agent's HOME was removed with its sessions")
}
