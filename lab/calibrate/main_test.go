package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/policy"
	"github.com/pawlbot/pawl/solver/thread"
)

const labelledPairs = "testdata/pairs.jsonl"

// calibrate runs the program with these arguments.
func calibrate(t *testing.T, stdin string, args ...string) (out, errs string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), args, strings.NewReader(stdin), &o, &e)
	return o.String(), e.String(), code
}

func TestJSONIsOneObject(t *testing.T) {
	out, errs, code := calibrate(t, "", "-json", "-seed", "7", labelledPairs)
	if code != exitDone || errs != "" {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	var got struct {
		Seed  uint64
		Views []struct {
			View                 string
			N, Same, Different   int
			Current, Recommended map[string]any
		}
	}
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&got); err != nil {
		t.Fatal(err)
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		t.Errorf("more than one object: %v", err)
	}
	if len(got.Views) != 3 || got.Seed != 7 {
		t.Fatalf("%d views, seed %d", len(got.Views), got.Seed)
	}
	for _, v := range got.Views {
		if v.N != 20 || v.Same != 8 || v.Different != 12 || v.Current["threshold"] != 0.85 {
			t.Errorf("view %+v, want 8 same and 12 different pairs at 0.85", v)
		}
		for _, key := range []string{"threshold", "tpr", "tpr_95", "fpr", "fpr_95"} {
			if v.Current[key] == nil || v.Recommended[key] == nil {
				t.Errorf("%s: %s is missing", v.View, key)
			}
		}
	}
}

func TestStandardInputAndFileGiveTheSameReport(t *testing.T) {
	pairs, err := os.ReadFile(labelledPairs)
	if err != nil {
		t.Fatal(err)
	}
	fromFile, _, _ := calibrate(t, "", "-threshold", "0.8", labelledPairs)
	fromInput, _, code := calibrate(t, string(pairs), "-threshold", "0.8", "-")
	if diff := cmp.Diff(fromFile, fromInput); code != exitDone || diff != "" {
		t.Errorf("exit code %d, (-file +input):\n%s", code, diff)
	}
}

// configuration writes a server's file whose threshold is 0.7.
func configuration(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "pawl.yml")
	text := "github: {app: {integration_id: 1, webhook_secret: 'a webhook secret of some length', private_key_file: app.pem}}\n" +
		"backends: [{name: codex, kind: codex}]\npolicy: {stagnation: {similarity: 0.7}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestThresholdComesFromFlagConfigurationOrDefault(t *testing.T) {
	file := configuration(t)
	for want, args := range map[string][]string{
		"current          0.85": nil,
		"current          0.70": {"-config", file},
		"current          0.80": {"-config", file, "-threshold", "0.8"},
	} {
		out, errs, code := calibrate(t, "", append(args, labelledPairs)...)
		if code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, want %q in\n%s%s", args, code, want, out, errs)
		}
	}
}

func TestPictureIsWellFormedAndLoadsNothing(t *testing.T) {
	file := filepath.Join(t.TempDir(), "roc.svg")
	if _, errs, code := calibrate(t, "", "-svg", file, labelledPairs); code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader(string(picture)))
	for err == nil {
		_, err = dec.Token()
	}
	if !errors.Is(err, io.EOF) {
		t.Errorf("not well-formed: %v", err)
	}
	for _, outside := range []string{"href", "url(", "<script", "<image"} {
		if strings.Contains(string(picture), outside) {
			t.Errorf("the picture refers to another address: %s", outside)
		}
	}
}

func TestBadInputGetsAClearError(t *testing.T) {
	good := `{"view": "diff", "label": "same", "group": "t", "a": "x", "b": "x"}` + "\n"
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		want        string
	}{
		{"no file", "", nil, exitUsage, "name one file"},
		{"two files", "", []string{"a", "b"}, exitUsage, "name one file"},
		{"a threshold in per cent", good, []string{"-threshold", "85", "-"}, exitUsage, "-threshold 85"},
		{"a threshold of zero", good, []string{"-threshold", "0", "-"}, exitUsage, "-threshold 0"},
		{"a threshold that is not a number", good, []string{"-threshold", "NaN", "-"}, exitUsage, "-threshold NaN"},
		{"an unknown flag", good, []string{"-fast"}, exitUsage, "-fast"},
		{"an export with a file", "", []string{"-export", "-config", "x", "y"}, exitUsage, "-export needs"},
		{"a missing file", "", []string{"nothing.jsonl"}, exitFailed, "nothing.jsonl"},
		{"a missing configuration", good, []string{"-config", "nothing.yml", "-"}, exitFailed, "nothing.yml"},
		{"an empty file", "", []string{"-"}, exitFailed, "it has no pairs"},
		{"a bad line", good + "{\n", []string{"-"}, exitFailed, "line 2: not a pair in JSON"},
		{"a picture that cannot be written", good, []string{"-svg", "nowhere/roc.svg", "-"}, exitFailed, "nowhere/roc.svg"},
		{"one label only", good, []string{"-"}, exitDone, ""},
	} {
		out, errs, code := calibrate(t, c.stdin, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, want %d and %q: %s%s", c.name, code, c.code, c.want, out, errs)
		}
	}
}

// TestExportCanBeReadAgain exports a run of two attempts. The second one passed.
func TestExportCanBeReadAgain(t *testing.T) {
	file := configuration(t)
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		t.Fatal(err)
	}
	db, err := store.Open(t.Context(), address(cfg.Database), store.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	id := thread.ID{Owner: "acme", Name: "widgets", Number: 7}
	at := time.Date(2026, 3, 2, 9, 0, 0, 0, time.UTC)
	var events []thread.NewEvent
	for n, v := range []policy.Verified{{Command: "make test", Exit: 1, Output: "FAIL: sum"}, {Command: "make test", Passed: true}} {
		events = append(events,
			thread.NewEvent{Kind: thread.KindAttemptStarted, At: at, Data: thread.Started{N: n + 1}},
			thread.NewEvent{Kind: thread.KindAttemptEnded, At: at.Add(time.Minute), Data: policy.Receipt{
				N: n + 1, Ending: policy.Completed, Final: "I tried something.", Verify: []policy.Verified{v}}})
	}
	if _, err := db.Append(t.Context(), id, true, events...); err != nil {
		t.Fatal(err)
	}
	out, errs, code := calibrate(t, "", "-export", "-config", file)
	if code != exitDone || !strings.Contains(out, `"label":"different"`) || !strings.Contains(out, `"view":"revision"`) {
		t.Fatalf("exit code %d:\n%s%s", code, out, errs)
	}
	if out, errs, code := calibrate(t, out, "-"); code != exitDone {
		t.Errorf("the export cannot be read: exit code %d\n%s%s", code, out, errs)
	}
}
