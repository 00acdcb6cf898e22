package policy

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// Leak is a place in an attempt's work that looks like a secret. It does not hold the secret.
type Leak struct {
	Path string `json:"path,omitempty"`
	Line int    `json:"line,omitempty"` // zero: the name of a file itself, which is not told
	Kind string `json:"kind"`           // what it looks like, such as "an AWS access key"
	// Fingerprint is by which a false alarm is allowed: 16 hexadecimal digits, of the path, the kind and the value.
	Fingerprint string `json:"fingerprint"`
}

// Named are leaks as people read of them.
func Named(all []Leak) string {
	return few(each(all, func(l Leak) string {
		where := fmt.Sprintf("line %d of %s", l.Line, l.Path)
		if l.Line == 0 {
			where = "the name of a file"
		}
		return fmt.Sprintf("%s looks like %s (fingerprint %s)", where, l.Kind, l.Fingerprint)
	}))
}

// instructing are the files by which repositories instruct agents, wherever they are, in lower case.
var instructing = []string{"agents.md", "agents.override.md", "claude.md", "claude.local.md", "gemini.md", "copilot-instructions.md", ".cursorrules"}

// Instructing are those of some paths that instruct agents.
func Instructing(paths []string) []string {
	return slices.DeleteFunc(slices.Clone(paths), func(p string) bool {
		return !slices.Contains(instructing, strings.ToLower(path.Base(p)))
	})
}
