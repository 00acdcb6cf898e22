package git

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/secret"
)

// program is the git executable with its environment, which may select a repository.
type program struct {
	exe string
	env []string
}

func (p program) with(env ...string) program {
	return program{exe: p.exe, env: slices.Concat(p.env, env)}
}

type command struct {
	args   []string
	ids    []string   // full object ids, passed after args; each may have a leading ^; anything else is ErrInvalid
	paths  []string   // passed after the ids and a --
	env    []string   // in addition to the program's
	stdin  string     // empty: standard input is empty
	limit  int        // of output in bytes; 0 means defaultOutput
	remote *Remote    // the server that git talks to, or nil
	files  []*os.File // more descriptors that git keeps open while it runs
}

const defaultOutput = 1 << 20

// stderrTail limits what is kept from the end of standard error, in bytes.
const stderrTail = 16 << 10

func findProgram() (program, error) {
	exe, err := exec.LookPath("git")
	if err != nil {
		return program{}, fmt.Errorf("find git: %w (install git 2.38 or newer)", err)
	}
	if exe, err = filepath.Abs(exe); err != nil {
		return program{}, fmt.Errorf("find git: %w", err)
	}
	return program{exe: exe, env: environment(exe)}, nil
}

// Version returns the output of `git version`, such as "git version 2.39.5".
func Version(ctx context.Context) (string, error) {
	p, err := findProgram()
	if err != nil {
		return "", err
	}
	return line(p.run(ctx, command{args: []string{"version"}}))
}

func line(out []byte, err error) (string, error) { return strings.TrimSpace(string(out)), err }

// settings are passed to every git command. They have the highest precedence: no repository can override them.
func settings() [][2]string {
	s := [][2]string{
		// No setting may start a program.
		{"core.hooksPath", "/dev/null"}, {"core.fsmonitor", "false"}, {"core.askPass", ""},
		{"credential.helper", ""}, {"core.attributesFile", "/dev/null"}, {"core.excludesFile", "/dev/null"},
		{"commit.gpgSign", "false"}, {"push.gpgSign", "false"},
		// Files have the same bytes on every machine.
		{"core.autocrlf", "false"}, {"core.safecrlf", "false"}, {"core.symlinks", "true"}, {"core.fileMode", "true"},
		{"core.ignoreCase", "false"}, {"core.quotePath", "false"}, {"core.untrackedCache", "false"}, {"core.splitIndex", "false"},
		// Refuse names that other systems read as .git.
		{"core.protectHFS", "true"}, {"core.protectNTFS", "true"},
		// Objects must never be garbage-collected while an attempt borrows them.
		{"gc.auto", "0"}, {"maintenance.auto", "false"},
		{"submodule.recurse", "false"}, {"fetch.recurseSubmodules", "false"}, {"push.recurseSubmodules", "no"},
		{"checkout.workers", "0"}, // one worker per core, for speed
		{"protocol.allow", "never"},
		// Abort a transfer that stays below 1,000 bytes a second for a minute.
		{"http.lowSpeedLimit", "1000"}, {"http.lowSpeedTime", "60"},
		{"fetch.fsckObjects", "true"},
	}
	for _, fault := range harmless {
		s = append(s, [2]string{"fetch.fsck." + fault, "ignore"}, [2]string{"fsck." + fault, "ignore"})
	}
	// git has known largePathname since 2.44. An older git fetch only warns about it, but an older git fsck would not
	// start.
	return append(s, [2]string{"fetch.fsck.largePathname", "ignore"})
}

// harmless lists faults of old commits and trees that GitHub accepts and git reads without risk, by their names in
// git-fsck(1). Even so, git never checks out paths such as .git/hooks. Two kinds remain refused: other faults of
// .gitmodules and .gitattributes, from which git reads addresses and sizes, and objects that git cannot read.
var harmless = []string{
	"badDate", "badDateOverflow", "badEmail", "badFilemode", "badName", "badTagName", "badTimezone", "duplicateEntries", "emptyName", "extraHeaderEntry",
	"fullPathname", "gitmodulesParse", "hasDot", "hasDotdot", "hasDotgit", "missingAuthor", "missingCommitter", "missingEmail",
	"missingNameBeforeEmail", "missingSpaceBeforeDate", "missingSpaceBeforeEmail", "missingTag", "missingTagEntry", "missingTaggerEntry", "missingTypeEntry",
	"multipleAuthors", "nulInCommit", "nullSha1", "treeNotSorted", "zeroPaddedDate", "zeroPaddedFilemode",
}

// environment returns git's whole environment. It excludes prompts and the machine's and the user's configuration. It
// sets the language to English, and passes on proxy and certificate settings.
func environment(exe string) []string {
	env := []string{
		"PATH=" + filepath.Dir(exe) + ":/usr/local/bin:/usr/bin:/bin",
		"HOME=/dev/null", // no directory: neither .gitconfig nor .netrc can exist below it
		"LC_ALL=C",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_ATTR_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null",
		"GIT_TERMINAL_PROMPT=0", "GIT_PAGER=cat", "GIT_OPTIONAL_LOCKS=0",
		"GIT_LITERAL_PATHSPECS=1", "GIT_NO_REPLACE_OBJECTS=1",
	}
	all := settings()
	env = append(env, "GIT_CONFIG_COUNT="+strconv.Itoa(len(all)))
	for i, s := range all {
		env = append(env, fmt.Sprintf("GIT_CONFIG_KEY_%d=%s", i, s[0]), fmt.Sprintf("GIT_CONFIG_VALUE_%d=%s", i, s[1]))
	}
	for _, name := range []string{"http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY",
		"SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"} {
		if value, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+value)
		}
	}
	return env
}

// run runs git in a process group that is killed when ctx ends. If the output exceeds the limit, run returns the output
// within the limit and ErrTooLarge.
func (p program) run(ctx context.Context, c command) ([]byte, error) {
	out := &limited{limit: c.limit}
	if c.limit == 0 {
		out.limit = defaultOutput
	}
	stderr, err := p.exec(ctx, c, out)
	if out.over {
		return out.buf, tooLarge("git %s wrote more than %d bytes", c.args[0], out.limit)
	}
	if err != nil {
		return out.buf, newCommandError(ctx, c.args[0], stderr, c.remote, err)
	}
	return out.buf, nil
}

// each calls f for each NUL-terminated record of git's output. If f fails, each stops git and returns the error.
func (p program) each(ctx context.Context, c command, f func(record string) error) error {
	return p.eachUpTo(ctx, c, 0, f)
}

func (p program) eachUpTo(ctx context.Context, c command, end byte, f func(record string) error) error {
	out := &records{f: f, end: end}
	stderr, err := p.exec(ctx, c, out)
	if out.err != nil {
		return out.err
	}
	if err != nil {
		return newCommandError(ctx, c.args[0], stderr, c.remote, err)
	}
	return nil
}

func (p program) exec(ctx context.Context, c command, out io.Writer) (string, error) {
	for _, id := range c.ids {
		if err := checkIDs(strings.TrimPrefix(id, "^")); err != nil {
			return "", err
		}
	}
	args := slices.Concat(c.args, c.ids)
	if len(c.paths) > 0 {
		args = slices.Concat(args, []string{"--"}, c.paths)
	}
	cmd := exec.CommandContext(ctx, p.exe, args...)
	cmd.Env = slices.Concat(p.env, c.env)
	cmd.Dir = "/"
	cmd.ExtraFiles = slices.Clone(c.files)
	if c.remote != nil {
		more, secret, err := c.remote.environment(3 + len(cmd.ExtraFiles))
		if err != nil {
			return "", err
		}
		if secret != nil {
			defer secret.Close()
			cmd.ExtraFiles = append(cmd.ExtraFiles, secret)
		}
		cmd.Env = append(cmd.Env, more...)
	}
	if c.stdin != "" {
		cmd.Stdin = strings.NewReader(c.stdin)
	}
	stderr := &render.End{Max: stderrTail}
	cmd.Stdout, cmd.Stderr = out, stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 5 * time.Second
	err := cmd.Run()
	return stderr.String(), err
}

// exitCode returns git's exit status, or -1.
func exitCode(err error) int {
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		return exit.ExitCode()
	}
	return -1
}

// limited keeps the first limit bytes and fails on the next one. It does not embed bytes.Buffer, because ReadFrom would
// bypass the limit.
type limited struct {
	buf   []byte
	limit int
	over  bool
}

func (l *limited) Write(b []byte) (int, error) {
	if room := l.limit - len(l.buf); len(b) > room {
		l.over = true
		l.buf = append(l.buf, b[:room]...)
		return room, io.ErrShortWrite
	}
	l.buf = append(l.buf, b...)
	return len(b), nil
}

type records struct {
	f    func(string) error
	end  byte
	rest []byte // start of an unfinished record
	err  error
}

func (r *records) Write(b []byte) (int, error) {
	ends := bytes.IndexByte(b, r.end) >= 0
	r.rest = append(r.rest, b...)
	if !ends { // do not search a long record again
		return len(b), r.err
	}
	for r.err == nil {
		record, rest, ok := bytes.Cut(r.rest, []byte{r.end})
		if !ok {
			break
		}
		r.err = r.f(string(record))
		r.rest = rest
	}
	if r.err != nil {
		return 0, r.err
	}
	r.rest = append([]byte{}, r.rest...) // free the finished records
	return len(b), nil
}

// Kinds of errors, for errors.Is.
var (
	// ErrNotExist means that a commit has no regular file at a path, or that a remote's HEAD names no branch.
	ErrNotExist = errors.New("no such file in the commit")
	// ErrEmpty means that the repository has no branches.
	ErrEmpty = errors.New("the repository is empty: push a first commit to it")
	// ErrAuth means that the server refused the credential.
	ErrAuth = errors.New("the git server refused the credential")
	// ErrNotFound means a missing or invisible repository.
	ErrNotFound = errors.New("the git server has no such repository")
	// ErrUnavailable means that the network or the server failed; a retry may help.
	ErrUnavailable = errors.New("the git server could not be reached")
	// ErrRejected means that the branch has moved.
	ErrRejected = errors.New("the branch has moved: fetch it and merge before pushing")
	// ErrProtected means that a server rule forbids the push (protected branch, workflow permission, hook).
	ErrProtected = errors.New("a rule of the repository forbids this push")
	// ErrMalformed means that git refuses an object from the server. A retry does not help.
	ErrMalformed = errors.New("git refuses an object of the repository")
	// ErrTooLarge means that a limit was exceeded.
	ErrTooLarge = errors.New("too large")
	// ErrUnsafe means that git would hang on the work tree or never finish reading it, or refuses its objects.
	ErrUnsafe = errors.New("unsafe work tree")
	// ErrInvalid means that a name, an address or an id is not safe to pass to git.
	ErrInvalid = errors.New("not acceptable")
)

// commandError describes a failed git command, without credentials.
type commandError struct {
	op     string // the subcommand, such as "fetch"
	stderr string // redacted
	kind   error  // one of the exported errors, or nil
	cause  error  // the error of os/exec or the context
}

func (e *commandError) Error() string {
	op := "git " + e.op
	if e.kind != nil {
		op += ": " + e.kind.Error()
	}
	return op + ": " + cmp.Or(e.stderr, e.cause.Error())
}

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

// phrases maps messages of git (with LC_ALL=C), libcurl and GitHub to kinds of errors. The first match wins.
var phrases = []struct {
	kind  error
	texts []string
}{
	{ErrMalformed, []string{"fsck error", "possible repository corruption on the remote side"}},
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

// redact removes credentials from git's output.
func redact(s string, remote *Remote) string {
	if remote != nil && remote.Token != "" {
		s = strings.NewReplacer(remote.Token, "[redacted]", remote.basic(), "[redacted]").Replace(s)
	}
	return userinfo.ReplaceAllString(secret.Redact(s), "${1}[redacted]@")
}

// unknownFault begins an older git's warning about a setting that it does not know.
const unknownFault = "warning: Skipping unknown msg id"

func lastLines(text string, n int) string {
	var kept []string
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, unknownFault) {
			continue
		}
		kept = append(kept, line)
	}
	return strings.Join(kept[max(0, len(kept)-n):], "; ")
}

func tooLarge(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrTooLarge, fmt.Sprintf(format, args...))
}
