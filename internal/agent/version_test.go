package agent

import (
	"strings"
	"testing"
)

func TestVersionIsComparedWithTheTestedOne(t *testing.T) {
	v := Version{Checked: "1.18.33", Package: "opencode-ai"}
	for output, want := range map[string]struct {
		order int
		text  string
	}{
		"1.18.33\n":                         {0, "version 1.18.33"},
		"opencode v1.18.33 (linux)":         {0, "version 1.18.33"},
		"1.18.34":                           {1, "version 1.18.34 is newer"},
		"1.19.0-rc.1":                       {1, "version 1.19.0 is newer"},
		"2.0.0":                             {1, "version 2.0.0 is newer"},
		"1.18.9":                            {-1, "version 1.18.9 is older"},
		"0.99.99":                           {-1, "version 0.99.99 is older"},
		"a warning first\n1.17.40 (Claude)": {-1, "version 1.17.40 is older"},
		"":                                  {1, "its version is unknown"},
		"dev\x1b[31m":                       {1, "its version is unknown"},
		strings.Repeat("x", 1<<20):          {1, "its version is unknown"},
	} {
		order, text := v.Judge(output)
		if order != want.order || !strings.HasPrefix(text, want.text) || len(text) > 500 {
			t.Errorf("%.40q: %d, %q, want %+v", output, order, text, want)
		}
	}
	if _, got := v.Judge("1.0.0"); !strings.Contains(got, "npm install --global opencode-ai@1.18.33") {
		t.Errorf("no hint in %q", got)
	}
}
