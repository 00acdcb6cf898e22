package solver

import (
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/internal/git"
)

// fullDisk is the part of a file system, one in so many, below whose free space
// it counts as full.
const fullDisk = 20

// makeRoom removes the HOME of the thread's agents after an attempt that left the
// disk full. The checkout is gone with its attempt, but a HOME stays for the
// sessions in it, and would take the room from all other threads. The next
// attempt begins a new session.
func (s *step) makeRoom() {
	var disk unix.Statfs_t
	if err := unix.Statfs(s.Config.DataDir, &disk); err != nil || disk.Bavail >= disk.Blocks/fullDisk {
		return
	}
	if err := git.Remove(s.homeOf(s.thread)); err != nil {
		s.log.Error().Err(err).Msg("the disk is full, and the agent's HOME cannot be removed")
		return
	}
	s.log.Warn().Msg("the disk is full: the agent's HOME was removed with its sessions")
}
