package store_test

import (
	"testing"

	"github.com/pawlbot/pawl/internal/store"
)

func TestANamelessDatabaseInMemoryIsNobodyElses(t *testing.T) {
	s, _, _ := open(t, "memory:")
	other, _, _ := open(t, "memory:")
	must(s.Append(t.Context(), issue(1), true, event("", 1)))(t)
	if got := must(other.Events(t.Context(), issue(1), 0))(t); len(got) != 0 {
		t.Errorf("another database has %d of its events", len(got))
	}
}

func TestAnImageIsACopy(t *testing.T) {
	s, _, _ := open(t, "memory:")
	must(s.Append(t.Context(), issue(1), true, event("", "before")))(t)
	image := must(s.Image(t.Context()))(t)
	must(s.Append(t.Context(), issue(1), true, event("", "after")))(t)
	for range 2 {
		c := must(store.Open(t.Context(), "memory:", store.Options{Image: image}))(t)
		must(c.Append(t.Context(), issue(1), true, event("", "in the copy")))(t)
		if got := must(c.Events(t.Context(), issue(1), 0))(t); len(got) != 2 {
			t.Errorf("the copy has %d events, want the one before it and its own", len(got))
		}
		check(t, c.Close())
	}
	if got := must(s.Events(t.Context(), issue(1), 0))(t); len(got) != 2 {
		t.Errorf("the original has %d events, want 2", len(got))
	}
}

func TestADatabaseInMemoryThatCannotBeIsRefused(t *testing.T) {
	wantRefusal(t, "memory:a/b", "plain name")
	if _, err := store.Open(t.Context(), "memory:", store.Options{Image: []byte("no image")}); err == nil {
		t.Error("noise was opened as an image")
	}
	if _, err := store.Open(t.Context(), "memory:named", store.Options{Image: []byte("x")}); err == nil {
		t.Error("an image was opened under a name")
	}
	if _, err := store.OpenReadOnly(t.Context(), "memory:", store.Options{}); err == nil {
		t.Error("a database in memory was opened for reading only")
	}
}

// BenchmarkOpen is what a simulation pays for each database.
func BenchmarkOpen(b *testing.B) {
	open := func(b *testing.B, dsn string, o store.Options) {
		for b.Loop() {
			s, err := store.Open(b.Context(), dsn, o)
			if err != nil {
				b.Fatal(err)
			}
			check(b, s.Close())
		}
	}
	b.Run("migrated", func(b *testing.B) { open(b, "memory:", store.Options{}) })
	b.Run("image", func(b *testing.B) {
		s := must(store.Open(b.Context(), "memory:", store.Options{}))(b)
		defer s.Close()
		open(b, "memory:", store.Options{Image: must(s.Image(b.Context()))(b)})
	})
}
