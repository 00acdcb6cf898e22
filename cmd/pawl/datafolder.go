package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

// maxNodes bounds how many servers may share a data directory on one machine.
const maxNodes = 64

// The first folder is waited for a little: a server that was killed and is
// started again at once may find it locked by a child that it was just starting,
// and would not find its caches and what its agents left in another one.
const (
	folderTries = 25
	folderPause = 20 * time.Millisecond
)

// dataFolder is the part of a data directory that one process uses alone. The
// kernel gives it back when the process ends in any way.
type dataFolder struct {
	root string // the data directory of all servers on this machine
	dir  string
	lock *os.File
}

// folder is the part of the i-th server in a data directory.
func folder(root string, i int) string {
	if i == 0 {
		return root
	}
	return filepath.Join(root, fmt.Sprintf("node-%d", i))
}

// claimData takes the data directory, or, where other servers on this machine
// use it already, a folder of its own in it: node-1, node-2 and so on. A server
// that is started again finds the folder that it left.
func claimData(root string) (*dataFolder, error) {
	for i := range maxNodes {
		own := folder(root, i)
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there)", err)
		}
		lock, err := lockFolder(own)
		for tries := 0; i == 0 && tries < folderTries && errors.Is(err, unix.EWOULDBLOCK); tries++ {
			time.Sleep(folderPause)
			lock, err = lockFolder(own)
		}
		if err == nil {
			return &dataFolder{root: root, dir: own, lock: lock}, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there, and the file system to lock)", err)
		}
	}
	return nil, fmt.Errorf("data_dir: %d servers use %s already; give this one another", maxNodes, root)
}

// lockFolder takes a folder that is there; EWOULDBLOCK means that a process has it.
func lockFolder(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, "pawl.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		return nil, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	return lock, nil
}

// abandoned calls f with each folder of the data directory that no process uses:
// what servers left that do not come back. Meanwhile no other process can take it.
func (d *dataFolder) abandoned(f func(dir string) error) error {
	for i := range maxNodes {
		dir := folder(d.root, i)
		if _, err := os.Stat(filepath.Join(dir, "pawl.lock")); dir == d.dir || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		lock, err := lockFolder(dir)
		if errors.Is(err, unix.EWOULDBLOCK) {
			continue
		}
		if err == nil {
			err = f(dir)
			lock.Close() // unlocks it
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// release gives the folder back.
func (d *dataFolder) release() {
	if d != nil {
		d.lock.Close() // closing unlocks; there is nothing to do about an error
	}
}
