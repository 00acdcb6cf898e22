package testrig

import (
	"context"
	"os"
	"path/filepath"
	"sync"

	"github.com/pawlbot/pawl/internal/store"
)

// defaultDSN is the database of a rig unless the test sets another.
const defaultDSN = "sqlite:pawl.db"

// emptyDatabase returns a migrated SQLite file, made once because a migration takes 21 ms.
var emptyDatabase = sync.OnceValues(func() ([]byte, error) {
	dir, err := os.MkdirTemp("", "pawl-database-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "pawl.db")
	db, err := store.Open(context.Background(), "sqlite:"+path, store.Options{})
	if err != nil {
		return nil, err
	}
	if err := db.Close(); err != nil {
		return nil, err
	}
	return os.ReadFile(path)
})

// copyDatabase gives the rig a migrated database before its first start.
func (r *Rig) copyDatabase() {
	r.T.Helper()
	path := filepath.Join(r.Dir, "pawl.db")
	_, err := os.Stat(path)
	if r.DSN != defaultDSN || err == nil {
		return
	}
	image, err := emptyDatabase()
	r.Must(err)
	r.Must(os.WriteFile(path, image, 0o600))
}
