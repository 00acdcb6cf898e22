package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pawlbot/pawl/internal/wait"
)

// maxNodes limits the servers that share a data directory on one machine.
const maxNodes = 64

// folderPatience limits the wait for the first folder, whose lock a killed server's child may hold briefly. The wait is
// worthwhile, because other folders lack the caches and sessions.
const folderPatience = time.Second / 2

const lockFile = "pawl.lock"

// dataFolder is the part of a data directory that one process locks.
type dataFolder struct {
	root string // data directory of all servers on this machine
	dir  string
	lock *os.File
	// place identifies dir by a stored id, since a container's host name changes.
	place string
}

// Folders returns the folders that servers may use in a data directory.
func Folders(root string) []string {
	all := []string{root}
	for i := 1; i < maxNodes; i++ {
		all = append(all, filepath.Join(root, fmt.Sprintf("node-%d", i)))
	}
	return all
}

// claimData locks the data directory or, if in use, node-1, node-2 and so on. A restarted server finds its folder
// again.
func claimData(ctx context.Context, root string) (*dataFolder, error) {
	for i, own := range Folders(root) {
		if err := os.MkdirAll(own, 0o700); err != nil {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there)", err)
		}
		patience := folderPatience
		if i > 0 {
			patience = 0
		}
		lock, err := wait.Lock(ctx, filepath.Join(own, lockFile), patience)
		if err == nil {
			id, err := io.ReadAll(lock)
			if err == nil && len(id) == 0 {
				id = []byte(rand.Text())
				_, err = lock.Write(id)
			}
			if err != nil {
				err = fmt.Errorf("data_dir: store its id: %w (check that the disk is not full)", err)
			}
			return &dataFolder{root: root, dir: own, lock: lock, place: string(id) + ":" + own}, err
		}
		if !errors.Is(err, wait.ErrLocked) {
			return nil, fmt.Errorf("data_dir: %w (the user that runs Pawl must be able to write there, and the file system must support locks)", err)
		}
	}
	return nil, fmt.Errorf("data_dir: %d servers use %s already; give this server another folder", maxNodes, root)
}

// abandoned locks each folder that no server uses, and calls f with it.
func (d *dataFolder) abandoned(ctx context.Context, f func(dir string) error) error {
	for _, dir := range Folders(d.root) {
		name := filepath.Join(dir, lockFile)
		if _, err := os.Stat(name); dir == d.dir || errors.Is(err, fs.ErrNotExist) {
			continue
		}
		lock, err := wait.Lock(ctx, name, 0)
		if errors.Is(err, wait.ErrLocked) {
			continue
		}
		if err == nil {
			err = f(dir)
			lock.Close() // unlocks
		}
		if err != nil {
			return err
		}
	}
	return nil
}
