package feedback

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestQuotedTextsOfPawlAreNotTheWritersWords(t *testing.T) {
	files, err := filepath.Glob("../../internal/checkrun/testdata/*.golden.md")
	if err != nil || len(files) < 20 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	marks := regexp.MustCompile(`<!--.*?-->`)
	for _, f := range files {
		data, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for i, text := range regexp.MustCompile(`(?m)^======== .*\n`).Split(string(data), -1) {
			text = marks.ReplaceAllString(text, "")
			q := "> " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n> ")
			if own := NewPage(q).Own(); own != "" && strings.TrimSpace(text) != "" {
				t.Errorf("%s %d: own %.200q\nof %.600q", filepath.Base(f), i, own, q)
			}
		}
	}
}
