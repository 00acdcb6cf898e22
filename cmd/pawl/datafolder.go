package main

import (
	"errors"
	"fmt"
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
	dir  string
	lock *os.File
}

// claimData takes the data directory, or, where other servers on this machine
// use it already, a folder of its own in it: node-1, node-2 and so on. A server
// that is started again finds the folder that it left.
func claimData(dir string) (*dataFolder, error) {
	for i := range maxNodes {
		own := dir
		if i > 0 {
			own = filepath.Join(dir, fmt.Sprintf("node-%d", i))
		}
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there)", err)
		}
		lock, err := os.OpenFile(filepath.Join(own, "pawl.lock"), os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there)", err)
		}
		err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		for tries := 0; i == 0 && tries < folderTries && errors.Is(err, unix.EWOULDBLOCK); tries++ {
			time.Sleep(folderPause)
			err = unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		}
		if err == nil {
			return &dataFolder{dir: own, lock: lock}, nil
		}
		lock.Close()
		if !errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("data_dir: lock %s: %w (use a file system that can lock)", own, err)
		}
	}
	return nil, fmt.Errorf("data_dir: %d servers use %s already; give this one another", maxNodes, dir)
}

// release gives the folder back.
func (d *dataFolder) release() {
	if d != nil {
		d.lock.Close() // closing unlocks; there is nothing to do about an error
	}
}
