package secret

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"pgregory.net/rapid"

	"github.com/pawlbot/pawl/internal/render"
)

func TestSecretsAreRemoved(t *testing.T) {
	r := New([]string{"KEY", "SHORT", "UNSET"}, func(name string) (string, bool) {
		v, ok := map[string]string{"KEY": "sekrit-value", "SHORT": "true"}[name]
		return v, ok
	})
	in := "key sekrit-value is true, ghs_" + strings.Repeat("aB3.", 20) + " github_pat_" + strings.Repeat("a", 40)
	if got, want := r.Redact(in), "key [hidden: KEY] is true, [redacted token] [redacted token]"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestSecretStaysHiddenInChangedTexts(t *testing.T) {
	values := map[string]string{
		"SHORT": "sk-12345678", "LONG": "sk-12345678-and-more-of-it", "PEM": "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\nhkiG9w0BAQEFAASC\n-----END KEY-----\n",
	}
	r := New([]string{"SHORT", "PEM", "LONG"}, func(name string) (string, bool) { v, ok := values[name]; return v, ok })
	for name, v := range values {
		text := "it printed " + v + " and went on"
		line := strings.Join(strings.Fields(text), " ")
		for shape, s := range map[string]string{"unchanged": text, "on one line": line, "in JSON": strings.ReplaceAll(text, "\n", `\n`), "shortened": render.Line(text, len(text)+1)} {
			got := strings.Join(strings.Fields(strings.ReplaceAll(r.Redact(s), `\n`, " ")), " ")
			if want := "it printed [hidden: " + name + "] and went on"; got != want {
				t.Errorf("%s, %s: got %q, want %q", name, shape, got, want)
			}
		}
		for n := range line {
			for how, s := range map[string]string{
				"head": render.Head(line, n), "tail": render.Tail(line, n), "short": render.Short(line, n+1), "clipped": render.Head(line, n) + " …", "cut": "[cut]\n" + render.Tail(line, n),
				"excerpt": render.Head(line, n/4) + "\n[…]\n" + render.Tail(line, n*3/4),
			} {
				got := r.Redact(s)
				for i := range len(v) - minLength {
					if part := v[i : i+minLength]; strings.Contains(got, part) && !strings.Contains("it printed  and went on", part) {
						t.Fatalf("%s, %s of %d: %q contains %q of it", name, how, n, got, part)
					}
				}
			}
		}
	}
	if got := r.Redact("it was sk-12345678"); got != "it was [hidden: SHORT]" {
		t.Errorf("the shorter of two: %q", got)
	}
}

func TestRedactKnowsTheFormsOfTokens(t *testing.T) {
	for _, token := range []string{
		"ghs_" + strings.Repeat("a", 36), "ghp_" + strings.Repeat("Z9", 18), "github_pat_" + strings.Repeat("a_", 30),
		"ghs_" + strings.Repeat("x.y-z_", 80), "eyJhbGciOiJSUzI1NiJ9.eyJpc3MiOiIxMjM0NTYifQ.c2lnbmF0dXJlc2ln",
	} {
		if got := Redact("https://x-access-token:" + token + "@github.com/o/r"); strings.Contains(got, token[8:]) {
			t.Errorf("Redact left %q", got)
		}
	}
	for _, plain := range []string{"ghs_short", "a plain sentence.", ""} {
		if got := Redact(plain); got != plain {
			t.Errorf("Redact(%q) = %q", plain, got)
		}
	}
}

func TestMaskReaderMasksAcrossReads(t *testing.T) {
	const key = "abcabcabd"
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOfN(rapid.SampledFrom([]rune("abcd\n")), 0, 200, -1).Draw(t, "text")
		for range rapid.IntRange(0, 3).Draw(t, "keys") {
			at := rapid.IntRange(0, len(text)).Draw(t, "at")
			text = text[:at] + key + text[at:]
		}
		got, err := io.ReadAll(MaskReader(pieces(t, text), key))
		if want := strings.ReplaceAll(text, key, "*********"); err != nil || string(got) != want {
			t.Fatalf("%q became %q, want %q, error %v", text, got, want, err)
		}
	})
}

func pieces(t *rapid.T, text string) io.Reader {
	var parts []io.Reader
	for rest := text; rest != ""; {
		n := rapid.IntRange(1, len(rest)).Draw(t, "piece")
		parts = append(parts, strings.NewReader(rest[:n]))
		rest = rest[n:]
	}
	return io.MultiReader(parts...)
}

func TestMaskReaderPassesErrorsAndWholeLines(t *testing.T) {
	broken := errors.New("broken")
	got, err := io.ReadAll(MaskReader(io.MultiReader(strings.NewReader("sk-prov"), iotest.ErrReader(broken)), "sk-provider-key"))
	if string(got) != "sk-prov" || !errors.Is(err, broken) {
		t.Errorf("%q, %v", got, err)
	}
	r, w := io.Pipe()
	defer w.Close()
	go w.Write([]byte("data: sk-\n\n"))
	buf := make([]byte, 100)
	if n, err := MaskReader(r, "sk-provider-key").Read(buf); err != nil || string(buf[:n]) != "data: sk-\n\n" {
		t.Errorf("%q, %v", buf[:n], err)
	}
}
