package doctor

import (
	"context"
	"fmt"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// Room is an amount of resources: a server's maximum need, or its limits. Zero means unknown or unlimited.
type Room struct {
	Memory config.Bytes
	PIDs   int // processes and threads
	Files  int // open files
	// Disk is one sandbox's limit; Volume covers data_dir with all sandboxes.
	Disk, Volume config.Bytes
}

// The server's own need, our choice; a busy server used a tenth.
const (
	ownMemory config.Bytes = 1 << 30 // bytes, with git
	ownPIDs                = 1024    // with git
	ownFiles               = 8192
)

// RoomFor returns what a server with this configuration needs.
func RoomFor(c config.Server) Room {
	r := Room{Files: ownFiles, Disk: c.Sandbox.Disk}
	workers := config.Bytes(c.Workers)
	if c.Sandbox.Memory > 0 {
		r.Memory = workers*c.Sandbox.Memory + ownMemory
	}
	if c.Sandbox.PIDs > 0 {
		r.PIDs = c.Workers*c.Sandbox.PIDs + ownPIDs
	}
	if c.Sandbox.Disk > 0 {
		r.Volume = workers*c.Sandbox.Disk + leastRoom
	}
	return r
}

// allowed returns the limits of this container, unit or user; zero means no limit.
func allowed() (r Room) {
	r.Memory = config.Bytes(sandbox.Ceiling("memory.max"))
	r.PIDs = int(sandbox.Ceiling("pids.max"))
	var files unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &files) == nil && files.Max < ownFiles {
		r.Files = int(files.Max)
	}
	return r
}

func (e *exam) room(context.Context) []Finding { return allowed().tooSmall(RoomFor(e.cfg)) }

// tooSmall warns of limits that are lower than the need.
func (r Room) tooSmall(need Room) (all []Finding) {
	if r.Memory > 0 && r.Memory < need.Memory {
		all = append(all, warning(
			fmt.Sprintf("memory is limited to %s; the server and the sandboxes of all workers may need %s", r.Memory, need.Memory),
			"raise the limit of the container or the unit, or lower workers or sandbox.memory",
		)...)
	}
	if r.PIDs > 0 && r.PIDs < need.PIDs {
		all = append(all, warning(
			fmt.Sprintf("processes are limited to %d; the server and the sandboxes of all workers may need %d", r.PIDs, need.PIDs),
			"raise pids_limit of the container or TasksMax of the unit, or lower workers or sandbox.pids",
		)...)
	}
	if r.Files > 0 && r.Files < need.Files {
		all = append(all, warning(
			fmt.Sprintf("open files are limited to %d; a server may need %d", r.Files, need.Files),
			"raise LimitNOFILE of the unit, or ulimit -n",
		)...)
	}
	return all
}
