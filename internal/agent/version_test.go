package agent

import (
	"strings"
	"testing"
)

func TestAVersionIsJudgedByTheOneThatWasChecked(t *testing.T) {
	v := Version{Checked: "1.18.33", Package: "opencode-ai"}
	for output, want := range map[string]VersionFinding{
		"1.18.33\n":                         {Found: "1.18.33", Kind: VersionChecked},
		"opencode v1.18.33 (linux)":         {Found: "1.18.33", Kind: VersionChecked},
		"1.18.34":                           {Found: "1.18.34", Kind: VersionNewer},
		"1.19.0-rc.1":                       {Found: "1.19.0", Kind: VersionNewer},
		"2.0.0":                             {Found: "2.0.0", Kind: VersionNewer},
		"1.18.9":                            {Found: "1.18.9", Kind: VersionOlder},
		"0.99.99":                           {Found: "0.99.99", Kind: VersionOlder},
		"a warning first\n1.17.40 (Claude)": {Found: "1.17.40", Kind: VersionOlder},
		"":                                  {Kind: VersionUnknown},
		"dev\x1b[31m":                       {Kind: VersionUnknown},
		strings.Repeat("x", 1<<20):          {Kind: VersionUnknown},
	} {
		got := v.Judge(output)
		if got.Found != want.Found || got.Kind != want.Kind || got.Text == "" || len(got.Text) > 500 {
			t.Errorf("%.40q: %+v, want %+v", output, got, want)
		}
	}
	if got := v.Judge("1.0.0").Text; !strings.Contains(got, "npm install --global opencode-ai@1.18.33") {
		t.Errorf("no hint in %q", got)
	}
}
