package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
)

// openMemory opens a database that ends with its last connection. It is SQLite
// like a file's: what differs is that its journal is kept in memory, too, and that
// one connection reads and writes. Two would wait for each other's locks by
// sleeping, since there is no write-ahead log beside which one could read.
//
// Connections of this process share a database by its name, which nobody else
// reaches. One without a name is its connection's alone.
func (s *database) openMemory(ctx context.Context, name string, o Options) (err error) {
	if strings.ContainsAny(name, "/?#%\x00") || name != "" && len(o.Image) > 0 {
		return fmt.Errorf("open memory:%.100q: want a plain name, or none with an image", name)
	}
	dsn := sqliteDSN("/"+name, "vfs", "memdb", "_txlock", "immediate")
	if name == "" {
		dsn = sqliteDSN(":memory:", "_txlock", "immediate")
	}
	if s.w, err = sql.Open("sqlite", dsn); err != nil {
		return fmt.Errorf("open a database in memory: %w", err)
	}
	s.w.SetMaxOpenConns(1)
	s.r = s.w
	if len(o.Image) > 0 {
		if err := s.load(ctx, o.Image); err != nil {
			return fmt.Errorf("open an image in memory: %w", err)
		}
	}
	if err := s.checkSQLite(ctx, "memory"); err != nil {
		return fmt.Errorf("open a database in memory: %w", err)
	}
	if len(o.Image) > 0 {
		return nil
	}
	return s.migrate(ctx)
}

// load makes an image the connection's database.
func (s *database) load(ctx context.Context, image []byte) error {
	return s.raw(ctx, func(c imager) error { return c.Deserialize(image) })
}

// Image is a copy of a database that was opened in memory, for Options.Image.
func (s *database) Image(ctx context.Context) (image []byte, err error) {
	err = s.raw(ctx, func(c imager) (err error) {
		image, err = c.Serialize()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("copy the database: %w", err)
	}
	return image, nil
}

// imager is what the SQLite driver's connections can do beside database/sql.
type imager interface {
	Serialize() ([]byte, error)
	Deserialize(image []byte) error
}

func (s *database) raw(ctx context.Context, f func(imager) error) (err error) {
	conn, err := s.w.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	return conn.Raw(func(driver any) error {
		c, ok := driver.(imager)
		if !ok {
			return errors.New("only SQLite can do that")
		}
		return f(c)
	})
}
