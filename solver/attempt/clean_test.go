package attempt

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

func TestOnlyOldTranscriptsAreRemoved(t *testing.T) {
	s := &Env{Now: time.Now, Config: config.Server{DataDir: t.TempDir()}}
	old, young := thread.ID{Owner: "acme", Name: "widgets", Number: 1}, thread.ID{Owner: "acme", Name: "widgets", Number: 2}
	now := time.Now()
	write := func(thread thread.ID, n int, age time.Duration) {
		t.Helper()
		dir := s.attemptDir(thread, n)
		for _, d := range []string{dir, s.homeOf(thread)} {
			if err := os.MkdirAll(d, 0o700); err != nil {
				t.Fatal(err)
			}
		}
		path := filepath.Join(dir, transcriptFile)
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, now.Add(-age), now.Add(-age)); err != nil {
			t.Fatal(err)
		}
	}
	write(old, 1, 90*24*time.Hour)
	write(old, 2, 60*24*time.Hour)
	write(young, 1, 60*24*time.Hour)
	write(young, 2, time.Hour)
	idle := thread.ID{Owner: "acme", Name: "widgets", Number: 3}
	write(idle, 1, 25*time.Hour)
	removed, err := s.CleanAttempts(t.Context(), s.Config.DataDir, now.Add(-30*24*time.Hour))
	if err != nil || removed != 3 {
		t.Errorf("removed %d: %v", removed, err)
	}
	var left []string
	err = filepath.WalkDir(filepath.Join(s.Config.DataDir, "attempts", "acme", "widgets"), func(path string, _ os.DirEntry, err error) error {
		rel, _ := filepath.Rel(s.Config.DataDir, path)
		left = append(left, rel)
		return err
	})
	want := []string{"attempts/acme/widgets", "attempts/acme/widgets/2", "attempts/acme/widgets/2/2", "attempts/acme/widgets/2/2/transcript", "attempts/acme/widgets/2/home",
		"attempts/acme/widgets/3", "attempts/acme/widgets/3/1", "attempts/acme/widgets/3/1/transcript"}
	if d := cmp.Diff(want, left); err != nil || d != "" {
		t.Error(d, err)
	}
}

func TestUnusedVerificationResultsAreRemoved(t *testing.T) {
	s := &Env{Now: time.Now, Config: config.Server{DataDir: t.TempDir()}}
	now := time.Now()
	for name, age := range map[string]time.Duration{"old": 31 * 24 * time.Hour, "young": 29 * 24 * time.Hour} {
		kept := filepath.Join(s.verifyDir(thread.ID{Owner: "acme", Name: name}), "base-2.json")
		bay, leave := s.bay(thread.ID{Owner: "acme", Name: name})
		defer leave()
		for _, dir := range []string{kept, bay, filepath.Join(filepath.Dir(kept), "base-1.json")} {
			if err := os.MkdirAll(dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.Chtimes(dir, now.Add(-age), now.Add(-age)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.CleanAttempts(t.Context(), s.Config.DataDir, now.Add(-30*24*time.Hour)); err != nil {
		t.Fatal(err)
	}
	left, err := filepath.Glob(filepath.Join(s.Config.DataDir, "verify", "acme", "*", "*"))
	for i := range left {
		left[i], _ = filepath.Rel(s.Config.DataDir, left[i])
	}
	want := []string{"verify/acme/old/0", "verify/acme/young/0", "verify/acme/young/base-1.json", "verify/acme/young/base-2.json"}
	if d := cmp.Diff(want, left); err != nil || d != "" {
		t.Error(d, err)
	}
}

func TestWorkIsRemovedAfterATakeover(t *testing.T) {
	db, err := store.Open(t.Context(), "sqlite:"+filepath.Join(t.TempDir(), "pawl.db"), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	s := &Env{Now: time.Now, Place: "here", Store: db, Config: config.Server{DataDir: t.TempDir()}}
	at := func(n int) thread.ID { return thread.ID{Owner: "acme", Name: "widgets", Number: n} }
	here, elsewhere := at(1), at(2)
	log := func(id thread.ID, kind thread.Kind, data any) {
		t.Helper()
		if _, err := db.Append(t.Context(), id, false, thread.NewEvent{Kind: kind, At: time.Now(), Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	work := func() (left []int) {
		t.Helper()
		for _, id := range []thread.ID{here, elsewhere} {
			if _, err := os.Stat(s.workOf(id)); err == nil {
				left = append(left, id.Number)
			}
		}
		return left
	}
	log(here, thread.KindAttemptStarted, thread.Started{N: 1, Place: "here"})
	log(elsewhere, thread.KindAttemptStarted, thread.Started{N: 1, Place: "elsewhere"})
	for _, id := range []thread.ID{here, elsewhere} {
		if err := os.MkdirAll(s.workOf(id), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	damaged := git.Damaged(s.cloneOf(here))
	if err := os.MkdirAll(damaged, 0o700); err != nil {
		t.Fatal(err)
	}
	kept, err := s.CleanWork(t.Context())
	if _, left := os.Lstat(damaged); !errors.Is(left, fs.ErrNotExist) {
		t.Errorf("a renamed damaged clone is left: %v", left)
	}
	if err != nil || !slices.Equal(kept, []thread.ID{here}) || !slices.Equal(work(), []int{1}) {
		t.Fatalf("at the start: kept %v, left %v, %v; want the running attempts' folders", kept, work(), err)
	}

	log(here, thread.KindAttemptEnded, policy.Receipt{N: 1, Ending: policy.Killed, Outcome: policy.Interrupted})
	leave, err := s.folders.Take(t.Context(), here)
	if err != nil {
		t.Fatal(err)
	}
	kept, err = s.CleanWorkOf(t.Context(), kept)
	if err != nil || len(kept) != 1 || len(work()) != 1 {
		t.Errorf("while an attempt uses the folder: kept %v, left %v, %v", kept, work(), err)
	}
	leave()
	kept, err = s.CleanWorkOf(t.Context(), kept)
	if err != nil || len(kept) != 0 || len(work()) != 0 {
		t.Errorf("after another node continued: kept %v, left %v, %v; want nothing", kept, work(), err)
	}
}
