package forge

import "regexp"

// tokenPattern matches GitHub's tokens: installation tokens of the old form
// and of the new one, which has about 520 characters with dots, tokens of
// persons, and App JWTs.
var tokenPattern = regexp.MustCompile(`gh[a-z]_[A-Za-z0-9._-]{36,}|github_pat_[A-Za-z0-9_]{36,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}`)

// Redact replaces every GitHub token in a text with a fixed mark. Texts that
// may quote a request, a git remote or the output of a program go through it
// before they reach a log, an error or a comment.
func Redact(text string) string {
	return tokenPattern.ReplaceAllString(text, "[redacted token]")
}
