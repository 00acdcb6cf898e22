package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Leak is a line in an attempt's work that looks like a secret. It does not contain the secret.
type Leak struct {
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"` // zero if the file's name is the secret; then Path is not shown
	Kind string `json:"kind"`           // such as "an AWS access key"
	// Fingerprint identifies a false alarm: 16 hexadecimal digits from the path, the kind and the value.
	Fingerprint string `json:"fingerprint"`
}

// Named describes leaks for users.
func Named(all []Leak) string {
	return few(each(all, func(l Leak) string {
		where := fmt.Sprintf("line %d of %s", l.Line, l.Path)
		if l.Line == 0 {
			where = "the name of a file"
		}
		return fmt.Sprintf("%s looks like %s (fingerprint %s)", where, l.Kind, l.Fingerprint)
	}))
}

// instructing lists the lower-case names of files that instruct agents, in any folder.
var instructing = []string{"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "copilot-instructions.md", ".cursorrules"}

func Instructing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !slices.Contains(instructing, strings.ToLower(path.Base(p)))
	})
}
