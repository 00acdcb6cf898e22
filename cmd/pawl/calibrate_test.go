package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

const labelledPairs = "../../internal/calibrate/testdata/pairs.jsonl"

// pawlCalibrate runs the built binary and returns what it printed and its exit
// code.
func pawlCalibrate(t *testing.T, stdin string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), pawlBinary, append([]string{"calibrate"}, args...)...)
	var out, errs strings.Builder
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &out, &errs
	err := cmd.Run()
	if _, ended := errors.AsType[*exec.ExitError](err); err != nil && !ended {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func TestCalibratePrintsOneObject(t *testing.T) {
	t.Parallel()
	out, errs, code := pawlCalibrate(t, "", labelledPairs, "--json", "--seed", "7")
	var got struct {
		Seed  uint64
		Views []struct {
			View                 string
			N, Same, Different   int
			AUC                  float64
			AUC95                [2]float64 `json:"auc_95"`
			Current, Recommended map[string]any
		}
	}
	dec := json.NewDecoder(strings.NewReader(out))
	if err := dec.Decode(&got); err != nil || code != exitDone || errs != "" {
		t.Fatalf("exit code %d, error %v, %s%s", code, err, out, errs)
	}
	if _, err := dec.Token(); err != io.EOF {
		t.Errorf("more than one object was printed: %v", err)
	}
	if len(got.Views) != 3 || got.Seed != 7 {
		t.Fatalf("%d views, seed %d", len(got.Views), got.Seed)
	}
	for _, v := range got.Views {
		if v.N != 20 || v.Same != 8 || v.Different != 12 || v.AUC < v.AUC95[0] || v.AUC > v.AUC95[1] || v.Current["threshold"] != 0.85 {
			t.Errorf("%+v", v)
		}
		for _, key := range []string{"threshold", "tpr", "tpr_95", "fpr", "fpr_95"} {
			if v.Current[key] == nil || v.Recommended[key] == nil {
				t.Errorf("%s: %s is missing", v.View, key)
			}
		}
	}
}

func TestCalibrateReadsStandardInputAndAnotherThreshold(t *testing.T) {
	t.Parallel()
	pairs, err := os.ReadFile(labelledPairs)
	if err != nil {
		t.Fatal(err)
	}
	fromFile, _, _ := pawlCalibrate(t, "", labelledPairs, "--threshold", "0.8")
	fromInput, _, code := pawlCalibrate(t, string(pairs), "-", "--threshold", "0.8")
	if fromInput != fromFile || code != exitDone {
		t.Errorf("exit code %d; standard input\n%s\nfile\n%s", code, fromInput, fromFile)
	}
	for _, want := range []string{"current          0.80", "seed 1", "█ fingerprint"} {
		if !strings.Contains(fromFile, want) {
			t.Errorf("%q is missing in\n%s", want, fromFile)
		}
	}
}

func TestCalibrateObeysTheConfiguration(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "pawl.yml")
	text := "github: {app: {integration_id: 1, webhook_secret: 'a webhook secret of some length', private_key_file: app.pem}}\n" +
		"backends: [{name: codex, kind: codex}]\npolicy: {stagnation: {similarity: 0.7}}\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		"current          0.85": nil,
		"current          0.70": {"--config", file},
		"current          0.80": {"--config", file, "--threshold", "0.8"},
	} {
		if out, errs, code := pawlCalibrate(t, "", append([]string{labelledPairs}, args...)...); code != exitDone || !strings.Contains(out, want) {
			t.Errorf("%q: exit code %d, want %q in\n%s%s", args, code, want, out, errs)
		}
	}
	if _, errs, code := pawlCalibrate(t, "", labelledPairs, "--config", file+".gone"); code != exitFailed || !strings.Contains(errs, "read configuration") {
		t.Errorf("without the file: exit code %d, %s", code, errs)
	}
}

func TestCalibrateDrawsAPicture(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "roc.svg")
	if out, errs, code := pawlCalibrate(t, "", labelledPairs, "--svg", file); code != exitDone {
		t.Fatalf("exit code %d: %s%s", code, out, errs)
	}
	picture, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	dec := xml.NewDecoder(strings.NewReader(string(picture)))
	for err == nil {
		_, err = dec.Token()
	}
	if err != io.EOF {
		t.Errorf("not well-formed: %v", err)
	}
	for _, outside := range []string{"href", "url(", "<script", "<image"} {
		if strings.Contains(string(picture), outside) {
			t.Errorf("the picture reaches outside itself: %s", outside)
		}
	}
}

func TestCalibrateSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	good := `{"view": "diff", "label": "same", "group": "t", "a": "x", "b": "x"}` + "\n"
	for _, c := range []struct {
		name, stdin string
		args        []string
		code        int
		want        string
	}{
		{"no file named", "", nil, exitUsage, "needs one file"},
		{"two files", "", []string{"a", "b"}, exitUsage, "needs one file"},
		{"a threshold in per cent", good, []string{"-", "--threshold", "85"}, exitUsage, "--threshold 85"},
		{"a threshold that is no number", good, []string{"-", "--threshold", "NaN"}, exitUsage, "--threshold NaN"},
		{"an unknown flag", good, []string{"-", "--fast"}, exitUsage, "--fast"},
		{"a file that is not there", "", []string{"nothing.jsonl"}, exitFailed, "nothing.jsonl"},
		{"an empty file", "", []string{"-"}, exitFailed, "it holds no pairs"},
		{"a bad line", good + "{\n", []string{"-"}, exitFailed, "line 2: not a pair in JSON"},
		{"a picture that cannot be written", good, []string{"-", "--svg", "nowhere/roc.svg"}, exitFailed, "nowhere/roc.svg"},
		{"one label only", good, []string{"-"}, exitDone, ""},
	} {
		out, errs, code := pawlCalibrate(t, c.stdin, c.args...)
		if code != c.code || !strings.Contains(errs, c.want) || code != exitDone && out != "" {
			t.Errorf("%s: exit code %d, %s%s", c.name, code, out, errs)
		}
	}
}
