package config

import (
	"os"
	"regexp"
	"testing"
)

func TestRecipesAreValidRepositoryFiles(t *testing.T) {
	page, err := os.ReadFile("../docs/recipes.md")
	if err != nil {
		t.Fatal(err)
	}
	all := regexp.MustCompile("(?s)\n## ([^\n]+)\n\n```yaml\n(.*?)```").FindAllSubmatch(page, -1)
	if len(all) < 10 {
		t.Errorf("%d recipes, want at least 10", len(all))
	}
	for _, one := range all {
		r, problems := ParseRepo(RepoFile, one[2])
		if len(problems) > 0 || len(r.Verify) == 0 {
			t.Errorf("%s has no verify commands, or is wrong: %v", one[1], Problems(problems))
		}
		if err := against(t, "repo.schema.json", one[2]); err != nil {
			t.Errorf("%s: %v", one[1], err)
		}
	}
}
