package learning

import (
	"cmp"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

type Task struct {
	Repo   string // owner/repo
	Labels []string
	Title  string
	Body   string
	Paths  []string // from MentionedPaths
}

func (t Task) Context() policy.Context {
	return policy.Context{Repo: strings.ToLower(t.Repo), Category: t.category(), Size: t.size()}
}

// Bounds of the sizes in bytes of title and text: a paragraph and a page (our choice).
const smallText, mediumText = 500, 3000

func (t Task) size() policy.Size {
	switch n := len(t.Title) + len(t.Body); {
	case n <= smallText:
		return policy.Small
	case n <= mediumText:
		return policy.Medium
	}
	return policy.Large
}

// category uses the labels, then paths of one kind, then the title.
func (t Task) category() policy.Category {
	for _, label := range t.Labels {
		if c := categoryOfWords(label); c != policy.Other {
			return c
		}
	}
	if c := categoryOfPaths(t.Paths); c != policy.Other {
		return c
	}
	return categoryOfWords(t.Title)
}

// categoryWords lists each category's words, specific categories first: "fix the docs" is docs.
var categoryWords = []struct {
	category policy.Category
	words    []string
}{
	{policy.Dependency, []string{"dependency", "dependencies", "deps", "bump", "upgrade", "dependabot", "renovate"}},
	{policy.Docs, []string{"documentation", "docs", "doc", "document", "readme", "typo", "changelog"}},
	{policy.Test, []string{"test", "tests", "testing", "coverage", "flaky"}},
	{policy.Refactor, []string{"refactor", "refactoring", "cleanup", "rename", "simplify", "tech-debt", "debt"}},
	{policy.Bug, []string{"bug", "fix", "fixes", "correct", "repair", "resolve", "defect", "regression", "crash", "crashes", "error", "broken", "panic", "fails", "failure"}},
	{policy.Feature, []string{"feature", "enhancement", "feat", "add", "adds", "support", "implement", "allow", "new", "proposal"}},
	{policy.Chore, []string{"chore", "ci", "build", "release", "tooling", "infra", "maintenance", "lint"}},
}

var wordForm = regexp.MustCompile(`[a-z0-9-]+`)

func categoryOfWords(text string) policy.Category {
	words := wordForm.FindAllString(strings.ToLower(text), -1)
	for _, c := range categoryWords {
		if slices.ContainsFunc(words, func(w string) bool { return slices.Contains(c.words, w) }) {
			return c.category
		}
	}
	return policy.Other
}

func categoryOfPaths(paths []string) policy.Category {
	var common policy.Category
	for _, p := range paths {
		c := categoryOfPath(strings.ToLower(p))
		common = cmp.Or(common, c)
		if c != common {
			return policy.Other
		}
	}
	return cmp.Or(common, policy.Other)
}

// pathKinds map lower-case folders and names to a category. The first match counts.
var pathKinds = []struct {
	category policy.Category
	folders  []string
	names    []string // patterns of path.Match
}{
	{policy.Dependency, nil, []string{
		"go.mod", "go.sum", "package.json", "package-lock.json", "yarn.lock", "pnpm-lock.yaml",
		"requirements.txt", "poetry.lock", "uv.lock", "cargo.toml", "cargo.lock", "gemfile", "gemfile.lock",
	}},
	{policy.Test, []string{"test", "tests", "__tests__", "testdata", "spec"}, []string{"*_test.*", "*.test.*", "*.spec.*", "test_*"}},
	{policy.Docs, []string{"docs", "doc"}, []string{"*.md", "*.rst", "*.adoc"}},
	{policy.Chore, []string{".github", ".ci", ".circleci"}, []string{"makefile", "dockerfile", ".gitignore", ".golangci.yml"}},
}

func categoryOfPath(p string) policy.Category {
	base, parts := path.Base(p), strings.Split(p, "/")
	folders := parts[:len(parts)-1]
	for _, kind := range pathKinds {
		inFolder := slices.ContainsFunc(folders, func(folder string) bool { return slices.Contains(kind.folders, folder) })
		named := slices.ContainsFunc(kind.names, func(pattern string) bool {
			matched, _ := path.Match(pattern, base)
			return matched
		})
		if inFolder || named {
			return kind.category
		}
	}
	return policy.Other
}

// fileName matches a word with a file's extension: a letter and up to four characters.
var fileName = regexp.MustCompile(`[^/]\.[A-Za-z][A-Za-z0-9]{0,4}$`)

const maxMentioned = 20

// MentionedPaths finds file names in a text, without addresses and abbreviations such as e.g.
func MentionedPaths(text string) []string {
	var found []string
	for word := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune(" \t\r\n`'\"()[]<>,;", r) }) {
		word = strings.TrimRight(word, ".:!?")
		if strings.Contains(word, "://") {
			continue
		}
		word, _, _ = strings.Cut(word, ":") // file:line
		if !looksLikeFile(word) || slices.Contains(found, word) {
			continue
		}
		found = append(found, word)
		if len(found) == maxMentioned {
			break
		}
	}
	return found
}

func looksLikeFile(word string) bool {
	if len(word) <= len("e.g") || len(word) > 200 {
		return false
	}
	return fileName.MatchString(word)
}
