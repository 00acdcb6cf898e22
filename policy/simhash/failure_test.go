package simhash

import (
	"strings"
	"testing"
)

// Ids and numbers that differ between two runs with the same failure do not belong to the failure.
func TestIdsAndNumbersDoNotDistinguishFailures(t *testing.T) {
	for name, texts := range map[string][2]string{
		"request id":     {"API Error: 500 internal error (request_id: req_011CUx4tFz9aKqW)", "API Error: 500 internal error (request_id: req_011CVb7RmLp2nXs)"},
		"short":          {"error: req_a1b2c3d4 failed", "error: req_99zz8812 failed"},
		"process":        {"worker[4242]: fatal: out of memory", "worker[77]: fatal: out of memory"},
		"port":           {"listen tcp 127.0.0.1:8080: address already in use", "listen tcp 127.0.0.1:43121: address already in use"},
		"duration":       {"--- FAIL: TestSum (0.03s)\n    want the sum", "--- FAIL: TestSum (12.4s)\n    want the sum"},
		"milliseconds":   {"npm error after 12ms: missing script", "npm error after 3.51 s: missing script"},
		"temporary path": {"open /tmp/TestX123/001/conf.yml: no such file or directory", "open /tmp/TestX98/001/conf.yml: no such file or directory"},
		"other folder":   {"open /tmp/tmpabcxyz/conf.yml: no such file", "open /var/folders/zz/T/tmpqqrst/conf.yml: no such file"},
		"frame":          {`File "/home/a/app/main.py", line 12, in run`, `File "/srv/b/app/main.py", line 19, in run`},
		"windows":        {`at Run in C:\build\x1\Main.cs:line 3`, `at Run in D:\w\Main.cs:line 40`},
		"address":        {"goroutine 7 [running]: main.run(0xc000012ab0)", "goroutine 81 [running]: main.run(0xc0000aa000)"},
		"uuid":           {"job 5f0c2a7e-1b7c-4b53-9a52-8f1d2c3b4a5e was cancelled by the queue", "job 0f0c2a7e-9b7c-4b53-8a52-1f1d2c3b4a5f was cancelled by the queue"},
		"clock":          {"09:15:01.123 ERROR cannot reach the database", "2026-11-25T10:02:44Z ERROR cannot reach the database"},
	} {
		a, b := Failure(texts[0]), Failure(texts[1])
		if a == 0 || a != b {
			t.Errorf("%s: %s and %s (%.2f), want the same", name, a, b, Similarity(a, b))
		}
	}
}

func TestDifferentFailuresAreNotSimilar(t *testing.T) {
	texts := []string{
		"ModuleNotFoundError: No module named 'requests'", "ModuleNotFoundError: No module named 'flask'", "SyntaxError: invalid syntax in main.py",
		"open /tmp/x/conf.yml: no such file or directory", "open /tmp/x/conf.yml: permission denied", "assertion failed: the sum is wrong", "undefined: Parse",
	}
	for i, a := range texts {
		for _, b := range texts[:i] {
			if s := Similarity(Failure(a), Failure(b)); s >= 0.85 {
				t.Errorf("%q and %q are %.2f similar", a, b, s)
			}
		}
	}
	for _, empty := range []string{"", " \n", "42 7.5s", "/tmp/3"} {
		if p := Failure(empty); p != 0 {
			t.Errorf("%q: %s, want nothing to compare", empty, p)
		}
	}
	if Failure(strings.Repeat("a/", 1<<16)) != 0 {
		t.Error("a path without a file name has a fingerprint")
	}
}
