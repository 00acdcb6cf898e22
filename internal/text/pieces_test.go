package text

import (
	"encoding/base32"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

const operatorsKey = "sk_Tq7-vB2x/9Lm+Zr4KpWd81cYhQeN"

func operators() ([]string, func(string) (string, bool)) {
	return []string{"KEY"}, func(string) (string, bool) { return operatorsKey, true }
}

// ways are ways to write a value so that no line holds it as it is.
func ways(v string) map[string]string {
	each := func(format, between string) string {
		var all []string
		for _, c := range []byte(v) {
			all = append(all, fmt.Sprintf(format, c))
		}
		return strings.Join(all, between)
	}
	wide := strings.Map(func(r rune) rune {
		if r > ' ' && r < 0x7f {
			return r - '!' + '！'
		}
		return r
	}, v)
	return map[string]string{
		"over lines": v[:9] + "\n" + v[9:20] + "\n" + v[20:], "as a sum": `"` + v[:10] + `" + "` + v[10:] + `"`,
		"in variables": "a := `" + v[:13] + "`\nb := `" + v[13:] + "`\n", "in another order": "end = " + v[12:] + "\nbegin = " + v[:12],
		"spaced": each("%c", " "), "backwards": backwards(v), "in capitals": strings.ToUpper(v), "as URLs escape": each("%%%02x", ""), "as bytes": each(`\x%02x`, ""),
		"as a list of bytes": each("0x%02X", ", "), "as octal": each(`\%03o`, ""), "as UTF-16": each(`\u%04x`, ""), "as entities": each("&#%d;", ""), "as hex entities": each("&#x%x;", ""),
		"as spaced hexadecimal": each("%02x", ":"), "as base32": base32.StdEncoding.EncodeToString([]byte("xy" + v))[8:], "wide": wide, "with invisible characters": each("%c", "\u200b"),
	}
}

func TestAValueInPiecesIsFoundInFilesAndTakenOutOfWords(t *testing.T) {
	l, r := NewSecrets(operators()), NewSecrets(operators())
	for how, written := range ways(operatorsKey) {
		if how == "as base32" { // which depends on what stands before
			written = base32.StdEncoding.EncodeToString([]byte(operatorsKey))
		}
		search := l.Search()
		for n, line := range strings.Split("package a\n// see it\n"+written+"\nfunc f() {}", "\n") {
			search.See(Place{"a.go", n + 1}, line)
		}
		places, what := search.Found()
		if len(places) == 0 || places[0].Path != "a.go" || places[0].Line < 3 || len(what[places[0]].Fingerprint) != 16 {
			t.Errorf("%s: found at %v: %v", how, places, what)
		}
		said := r.Redact("I found this: " + written + "\nThat is all.")
		if !strings.HasPrefix(said, "I found this: ") || !strings.HasSuffix(said, "\nThat is all.") || !strings.Contains(said, "[hidden: KEY]") || strings.Contains(said, operatorsKey[3:9]) {
			t.Errorf("%s: people read %q", how, said)
		}
	}
	for _, line := range []string{operatorsKey[:20], operatorsKey[5:], "nothing of it", strings.Repeat("Tq7vB2", 9)} {
		search := l.Search()
		search.See(Place{"a", 1}, line)
		if places, _ := search.Found(); len(places) > 0 {
			t.Errorf("%q counts as all of it: %v", line, places)
		}
		if said := r.Redact("it is " + line + " here"); said != "it is "+line+" here" {
			t.Errorf("%q became %q", line, said)
		}
	}
}

func TestPiecesMayStandInSeveralFilesAndTexts(t *testing.T) {
	search := NewSecrets(operators()).Search()
	search.See(Place{"0" + operatorsKey[:8], 0}, "0"+operatorsKey[:8])
	search.See(Place{"a.txt", 7}, "x = "+operatorsKey[8:20])
	search.See(Place{"b.txt", 9}, "y = "+operatorsKey[20:])
	if places, _ := search.Found(); len(places) != 3 || places[1] != (Place{"a.txt", 7}) || places[2] != (Place{"b.txt", 9}) {
		t.Errorf("found at %v", places)
	}
	title, body, other := "first "+operatorsKey[:16], "then "+operatorsKey[16:], "nothing"
	NewSecrets(operators()).RedactAll(&title, &body, &other)
	if title != "first [hidden: KEY]" || body != "then [hidden: KEY]" || other != "nothing" {
		t.Errorf("people read %q, %q and %q", title, body, other)
	}
}

func TestWordsOfAnyTextAreNoValueOfWords(t *testing.T) {
	for _, c := range []struct {
		value, text string
		found       bool
	}{
		{"development-database-password-testing", "In development the server's database has a password.\nTesting a development build: a passwordless database, database passes, testing.", false},
		{"developmentDatabasePasswordTesting", "// Development of databases\nfunc password(is testing) { development(of.Database) }", false},
		{"developmentdatabasepassword", "the development\nof a database\nwith a password", false},
		{"development-secret-for-widgets", "development of secrets; forward widgets, secret for us", false},
		{"DEVELOPMENT_SECRET_WIDGETS", "secrets of widgets, under development", false},
		{"development-database-password-testing", "a = 'development-data'\nb = 'base-password-testing'", true},
		{"development-database-password-testing", "development\ndatabase\npassword\ntesting", true},
		{"development-database-password-testing", "a = 'password-testing'\nb = 'development-database'", true},
		{"developmentDatabasePasswordTesting", "d e v e l o p m e n t D a t a b a s e P a s s w o r d T e s t i n g", true},
		{"development-db-x7", "development_db.x7", true},
		{"webhook-secret-network", "a secret of the network and the webhook", false},
		{"development-9f8e7d6c5b4a3921", "in development, 9f8e7d6c", false},
		{"development-9f8e7d6c5b4a3921", "x = '5b4a3921'; y = 'development'; z = '9f8e7d6c'", true},
		{"vkqzrwbtnhgdxslp", "x = 'vkqzrwbt'\ny = 'nhgdxslp'", true},
	} {
		search := NewSecrets([]string{"KEY"}, func(string) (string, bool) { return c.value, true }).Search()
		for n, line := range strings.Split(c.text, "\n") {
			search.See(Place{"a.go", n + 1}, line)
		}
		if places, _ := search.Found(); len(places) > 0 != c.found {
			t.Errorf("%q in %q: found at %v, want %v", c.value, c.text, places, c.found)
		}
		said := NewSecrets([]string{"KEY"}, func(string) (string, bool) { return c.value, true }).Redact("It is: " + c.text + " .")
		if strings.Contains(said, "[hidden: KEY]") != c.found {
			t.Errorf("%q: people read %q", c.value, said)
		}
	}
}

// TestNoTextTakesTheSearchApart has any text folded and redacted, and the value found wherever it is cut in two.
func TestNoTextTakesTheSearchApart(t *testing.T) {
	l, r := NewSecrets(operators()), NewSecrets(operators())
	rapid.Check(t, func(t *rapid.T) {
		before := rapid.OneOf(rapid.String(), rapid.StringMatching(`[%&\\0x#u;a-f1\n é]*`)).Draw(t, "before")
		cut := rapid.IntRange(8, len(operatorsKey)-8).Draw(t, "cut")
		search := l.Search()
		search.See(Place{"a", 1}, before+"|"+operatorsKey[:cut])
		search.See(Place{"b", 1}, operatorsKey[cut:]+" "+before)
		if places, _ := search.Found(); len(places) != 2 {
			t.Fatalf("found at %v", places)
		}
		if said := r.Redact(before + "|" + operatorsKey[:cut] + "\n" + operatorsKey[cut:] + " " + before); strings.Contains(said, operatorsKey[8:14]) {
			t.Fatalf("people read %q", said)
		}
	})
}

func BenchmarkLinesInPieces(b *testing.B) {
	l := NewSecrets(operators())
	line := strings.Repeat("func (c *checkout) Commit(ctx context.Context) error { // ", 20)
	b.SetBytes(int64(len(line)))
	for b.Loop() {
		search := l.Search()
		search.See(Place{"a", 1}, line)
	}
}
