package git

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/internal/text"
)

// What can be wrong, for errors.Is. Everything else is a plain error.
var (
	// ErrNotExist: the path is not a regular file of that commit.
	ErrNotExist = errors.New("no such file in the commit")
	// ErrEmpty: the repository has no branches yet.
	ErrEmpty = errors.New("the repository is empty: push a first commit to it")
	// ErrAuth: the server did not accept the credential, or it may not do this.
	ErrAuth = errors.New("the git server refused the credential")
	// ErrNotFound: there is no such repository, or the credential may not see it.
	ErrNotFound = errors.New("the git server knows no such repository")
	// ErrUnavailable: the network or the server failed; trying again is worth it.
	ErrUnavailable = errors.New("the git server could not be reached")
	// ErrRejected: the branch is not where the caller thought it was.
	ErrRejected = errors.New("the branch has moved: fetch it and merge before pushing")
	// ErrProtected: a rule of the server forbids this push (a protected branch, a
	// workflow file without the workflows permission, a hook).
	ErrProtected = errors.New("a rule of the repository forbids this push")
	// ErrTooLarge: a bound of this package was exceeded.
	ErrTooLarge = errors.New("too large")
	// ErrUnsafe: the work tree holds something that git must not be let near.
	ErrUnsafe = errors.New("unsafe work tree")
	// ErrInvalid: a name, address or id that no git command may be given.
	ErrInvalid = errors.New("not acceptable")
)

// commandError is a git command that failed. Its text ends with the last lines
// that git wrote, without credentials.
type commandError struct {
	op     string // the subcommand, such as "fetch"
	stderr string // redacted
	kind   error  // one of the errors above, or nil
	cause  error  // what os/exec or the context said
}

func (e *commandError) Error() string {
	op := "git " + e.op
	if e.kind != nil {
		op += ": " + e.kind.Error()
	}
	return op + ": " + cmp.Or(e.stderr, e.cause.Error())
}

// Unwrap lets errors.Is see both the kind, if there is one, and the cause.
func (e *commandError) Unwrap() error { return errors.Join(e.kind, e.cause) }

func newCommandError(ctx context.Context, op, stderr string, remote *Remote, cause error) error {
	if ctx.Err() != nil {
		cause = context.Cause(ctx)
	}
	e := &commandError{op: op, stderr: lastLines(redact(stderr, remote), 6), cause: cause}
	if remote == nil || ctx.Err() != nil {
		return e
	}
	for _, p := range phrases {
		if containsAny(stderr, p.texts) {
			e.kind = p.kind
			break
		}
	}
	return e
}

// phrases maps what git and its HTTP helper write under LC_ALL=C to a kind,
// first match wins. The texts are from git's http.c, remote-curl.c and
// transport.c, from libcurl's strerror.c, and from GitHub's answers.
var phrases = []struct {
	kind  error
	texts []string
}{
	{ErrNotFound, []string{"Repository not found", "' not found", "returned error: 404", "does not appear to be a git repository"}},
	{ErrAuth, []string{"Authentication failed", "could not read Username", "could not read Password", "returned error: 401",
		"returned error: 403"}},
	{ErrUnavailable, []string{"returned error: 429", "returned error: 5", "Could not resolve host", "Failed to connect",
		"Couldn't connect", "Connection refused", "Connection reset", "Connection timed out", "Operation timed out",
		"Operation too slow", "Empty reply from server", "transfer closed with", "RPC failed", "early EOF",
		"unexpected disconnect", "the remote end hung up unexpectedly", "SSL_ERROR_SYSCALL", "gnutls_handshake"}},
}

func containsAny(s string, texts []string) bool {
	return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(s, text) })
}

var userinfo = regexp.MustCompile(`(://)[^/\s@]+@`)

// redact removes the credential of the remote, and anything that looks like
// one, from what git wrote.
func redact(s string, remote *Remote) string {
	if remote != nil && remote.Token != "" {
		s = strings.NewReplacer(remote.Token, "[redacted]", remote.basic(), "[redacted]").Replace(s)
	}
	return userinfo.ReplaceAllString(text.Redact(s), "${1}[redacted]@")
}

// lastLines is the last n lines of text that say something, joined by "; ".
func lastLines(text string, n int) string {
	var kept []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept[max(0, len(kept)-n):], "; ")
}

// tooLarge is an ErrTooLarge that says what was too large and what would fit.
func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTooLarge, fmt.Sprintf(format, args...))
}
