package server

import (
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/postgrestest"
	"github.com/pawlbot/pawl/internal/store"
)

// A server that starts before its database waits for it. If the database rejects the server, the server ends.
func TestServerWaitsForItsDatabase(t *testing.T) {
	t.Parallel()
	db := postgrestest.Start(t)
	dsn := db.Address(db.NewDatabase(t, ""))
	waits := make(chan string, 100)
	log := zerolog.New(io.Discard).Hook(zerolog.HookFunc(func(_ *zerolog.Event, _ zerolog.Level, message string) { waits <- message }))
	open := func(dsn string) error {
		s, err := openStore(t.Context(), config.Database{Driver: config.Postgres, URL: config.NewSecret(dsn)}, store.Options{}, log)
		if err != nil {
			return err
		}
		return s.Close()
	}
	db.Kill()
	opened := make(chan error, 1)
	go func() { opened <- open(dsn) }()
	select {
	case <-waits:
	case err := <-opened:
		t.Fatalf("the server did not wait: %v", err)
	}
	db.Restart(t)
	if err := <-opened; err != nil {
		t.Error(err)
	}
	if err := open(db.Address("elsewhere")); err == nil || !strings.Contains(err.Error(), `database "elsewhere" does not exist`) {
		t.Errorf("%v, want the database's answer at once", err)
	}
}
