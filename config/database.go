package config

import (
	"errors"
	"net/url"
	"strings"
)

// The database drivers.
const (
	SQLite   = "sqlite"
	Postgres = "postgres"
)

// Database names where the log is kept: sqlite:PATH or postgres://….
type Database struct {
	// Driver is SQLite or Postgres.
	Driver string
	// Path is the file of an SQLite database.
	Path string
	// URL is the connection string of a PostgreSQL database; it usually holds a
	// password.
	URL Secret
}

// errDatabase repeats nothing of the value, which may hold a password.
var errDatabase = errors.New("is neither sqlite:PATH nor postgres://USER:PASSWORD@HOST/NAME; write one of the two")

// UnmarshalText parses the one-line form.
func (d *Database) UnmarshalText(text []byte) error {
	value := string(text)
	if path, ok := strings.CutPrefix(value, "sqlite:"); ok {
		return d.parseSQLite(path)
	}
	if strings.HasPrefix(value, "memory:") {
		return errors.New("would be lost with the process, and with it what GitHub was told is stored; write sqlite:PATH")
	}
	if strings.HasPrefix(value, "postgres://") || strings.HasPrefix(value, "postgresql://") {
		return d.parsePostgres(value)
	}
	return errDatabase
}

func (d *Database) parseSQLite(path string) error {
	switch {
	case path == "":
		return errors.New("names no file after sqlite:; write sqlite:pawl.db")
	case strings.HasPrefix(path, ":memory:"), strings.HasPrefix(path, "file:"), strings.ContainsAny(path, "?\x00"):
		return errors.New("is not the plain path of a file; Pawl sets SQLite's options itself and keeps nothing in memory, so write sqlite:PATH")
	}
	*d = Database{Driver: SQLite, Path: path}
	return nil
}

func (d *Database) parsePostgres(value string) error {
	u, err := url.Parse(value)
	if err != nil {
		return errors.New("is not a valid URL; write postgres://USER:PASSWORD@HOST/NAME and percent-encode special characters in the password")
	}
	if strings.Trim(u.Path, "/") == "" {
		return errors.New("names no database; write postgres://USER:PASSWORD@HOST/NAME")
	}
	*d = Database{Driver: Postgres, URL: NewSecret(value)}
	return nil
}
