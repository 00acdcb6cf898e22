package git

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

type Remote struct {
	// URL is an https or http URL, or the absolute path of a local repository. It must not contain a user name or
	// password.
	URL string
	// Token is an installation token. Empty means no authentication.
	//
	// git reads it from a configuration file in memory. The token never appears on disk, nor in arguments or the
	// environment, which other processes can read.
	Token string
}

// basic returns the credential for HTTP basic authentication (RFC 7617), with GitHub's documented user name for
// installation tokens.
func (r *Remote) basic() string {
	return base64.StdEncoding.EncodeToString([]byte("x-access-token:" + r.Token))
}

// check refuses addresses that git would interpret differently than Pawl. It returns nil for a local path.
func (r *Remote) check() (*url.URL, error) {
	if strings.ContainsAny(r.URL, "\x00\r\n") || strings.ContainsAny(r.Token, "\x00\r\n\"\\") {
		return nil, fmt.Errorf("remote with control characters: %w", ErrInvalid)
	}
	if filepath.IsAbs(r.URL) {
		return nil, nil
	}
	u, err := url.Parse(r.URL)
	if err != nil || !isWeb(u) {
		return nil, fmt.Errorf("remote %q: %w: use an https address or an absolute path", redact(r.URL, r), ErrInvalid)
	}
	if u.User != nil {
		return nil, fmt.Errorf("remote %s: %w: the address must not contain a credential", u.Redacted(), ErrInvalid)
	}
	return u, nil
}

// isWeb reports whether git may contact an address's server.
func isWeb(u *url.URL) bool {
	switch u.Scheme {
	case "https", "http":
		return u.Host != ""
	}
	return false
}

// environment returns git's environment for the remote. git must inherit secret as descriptor fd. secret is nil without
// a token.
func (r *Remote) environment(fd int) (env []string, secret *os.File, err error) {
	u, err := r.check()
	if err != nil {
		return nil, nil, err
	}
	if u == nil {
		return []string{"GIT_ALLOW_PROTOCOL=file"}, nil, nil
	}
	env = []string{"GIT_ALLOW_PROTOCOL=https:http"}
	if r.Token == "" {
		return env, nil, nil
	}
	text := fmt.Sprintf("[http %q]\n\textraHeader = \"Authorization: Basic %s\"\n", u.Scheme+"://"+u.Host+"/", r.basic())
	if secret, err = memoryFile(text); err != nil {
		return nil, nil, err
	}
	// Pass a path, because every git process opens the file again.
	return append(env, fmt.Sprintf("GIT_CONFIG_GLOBAL=/proc/self/fd/%d", fd)), secret, nil
}

func memoryFile(text string) (*os.File, error) {
	fd, err := unix.MemfdCreate("pawl", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("create a memory file: %w", err)
	}
	f := os.NewFile(uintptr(fd), "memory")
	if _, err := f.WriteAt([]byte(text), 0); err != nil {
		f.Close()
		return nil, fmt.Errorf("write a memory file: %w", err)
	}
	return f, nil
}

// fullRef returns a full reference: it adds refs/heads/ unless the name begins with refs/. It refuses names that
// git-check-ref-format(1) forbids.
func fullRef(name string) (string, error) {
	full := name
	if !strings.HasPrefix(name, "refs/") {
		full = "refs/heads/" + name
	}
	switch name {
	case "", "@":
		return "", notAllowed(name)
	}
	if strings.HasPrefix(name, "-") || !validRef(full) {
		return "", notAllowed(name)
	}
	return full, nil
}

func notAllowed(name string) error {
	return fmt.Errorf("branch %.100q: %w: git does not allow this name", name, ErrInvalid)
}

func validRef(full string) bool {
	if len(full) > 1024 || strings.HasSuffix(full, ".") {
		return false
	}
	if strings.Contains(full, "..") || strings.Contains(full, "@{") {
		return false
	}
	isControl := func(r rune) bool { return r < 0x20 }
	if strings.ContainsAny(full, " ~^:?*[\\\x7f") || strings.ContainsFunc(full, isControl) {
		return false
	}
	for part := range strings.SplitSeq(full, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return false
		}
	}
	return true
}

// cacheRef returns the cache's name for a fetched reference. The hash keeps names from conflicting. Otherwise, branch
// a/b could not be stored next to a branch a that the remote has deleted.
func cacheRef(full string) string {
	_, end := halves(full)
	return cachePrefix(full) + end
}

func cachePrefix(full string) string {
	sum := sha256.Sum256([]byte(full))
	return "refs/pawl/" + hex.EncodeToString(sum[:16]) + "-"
}

// pattern returns a refspec that does not fail the fetch if the reference is missing. The refspec also matches the few
// references with more characters in the middle of the name. Callers ignore them.
func pattern(full string) (from, to string) {
	start, end := halves(full)
	return start + "*" + end, cachePrefix(full) + "*" + end
}

// halves cuts a reference in the middle of the longest part of its name, so that few other names share both ends.
func halves(full string) (start, end string) {
	parts := strings.Split(full, "/")
	cut, longest, at := 0, -1, 0
	for i, part := range parts {
		named := i >= 2 || i == len(parts)-1 // after refs/heads/
		if named && len(part) > longest {
			cut, longest = at+len(part)/2, len(part)
		}
		at += len(part) + 1
	}
	return full[:cut], full[cut:]
}

var idPattern = regexp.MustCompile(`^[0-9a-f]{40}([0-9a-f]{24})?$`)

// checkIDs refuses everything except full object ids, so that no argument can be read as an option or a revision
// expression.
func checkIDs(ids ...string) error {
	for _, id := range ids {
		if !idPattern.MatchString(id) {
			return fmt.Errorf("object id %.80q: %w: use 40 hexadecimal digits", id, ErrInvalid)
		}
	}
	return nil
}

// Push moves a remote branch from expectOld to the cache's commit sha. An empty expectOld means that the branch does
// not exist yet.
//
// It only moves a branch forward, and only from expectOld; otherwise it returns ErrRejected and changes nothing. A push
// may be repeated after a crash: a branch that is already at sha is not an error. Other errors are ErrProtected, ErrAuth,
// ErrNotFound and ErrUnavailable. The caller must not pass the default branch.
func (c *Cache) Push(ctx context.Context, r Remote, sha, branch, expectOld string) error {
	if err := checkIDs(sha); err != nil {
		return fmt.Errorf("push: %w", err)
	}
	ref, err := fullRef(branch)
	if err != nil {
		return fmt.Errorf("push: %w", err)
	}
	if !strings.HasPrefix(ref, "refs/heads/") {
		return fmt.Errorf("push to %s: %w: only branches are pushed", ref, ErrInvalid)
	}
	if expectOld != "" {
		forward, err := c.IsAncestor(ctx, expectOld, sha)
		if err != nil {
			return fmt.Errorf("push to %s: %w", branch, err)
		}
		if !forward {
			return fmt.Errorf("push %s to %s: %w: it does not contain %s", sha, branch, ErrRejected, expectOld)
		}
	}
	// The lease makes the server compare the old value when it sets the new one. It would also permit a rewrite,
	// which the IsAncestor check excludes.
	return c.push(ctx, r, branch, "--force-with-lease="+ref+":"+expectOld, sha+":"+ref)
}

// PushSide sets a reference below refs/pawl/ by force. GitHub's pages do not show these references. An empty sha
// deletes the reference.
func (c *Cache) PushSide(ctx context.Context, r Remote, sha, ref string) error {
	full, err := sideRef(sha, ref)
	if err != nil {
		return fmt.Errorf("push to %s: %w", ref, err)
	}
	return c.push(ctx, r, ref, "--force", sha+":"+full)
}

func sideRef(sha, ref string) (string, error) {
	full, err := fullRef(ref)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(full, "refs/pawl/") {
		return "", ErrInvalid
	}
	if sha == "" {
		return full, nil
	}
	return full, checkIDs(sha)
}

// push pushes and classifies a failure: with --porcelain, git prints "!\tfrom:to\t[rejected] (why)" for a reference
// that was not updated.
func (c *Cache) push(ctx context.Context, r Remote, name, force, refspec string) error {
	args := []string{"push", "--porcelain", "--no-verify", force, "--", r.URL, refspec}
	out, err := c.run(ctx, command{args: args, remote: &r})
	if err == nil {
		return nil
	}
	output := ""
	failed, ok := errors.AsType[*commandError](err)
	if ok {
		output = failed.stderr
	}
	removes := strings.HasPrefix(refspec, ":")
	if removes && strings.Contains(output, "remote ref does not exist") {
		return nil
	}
	for line := range strings.Lines(string(out)) {
		rest, ok := strings.CutPrefix(strings.TrimSpace(line), "!\t")
		_, why, _ := strings.Cut(rest, "\t")
		why = redact(why, &r)
		kind := rejection(why)
		if !ok || kind == nil {
			continue
		}
		if kind == ErrProtected && output != "" {
			why += "; " + output // names the broken rules
		}
		return fmt.Errorf("push to %s: %w: %s", name, kind, why)
	}
	return fmt.Errorf("push to %s: %w", name, err)
}

// rejection returns the kind of a refused push, or nil if the push was not refused. "[rejected]" is git's decision.
// "[remote rejected]" is the server's: the branch just moved, a rule forbids the push, or the server has a problem.
func rejection(why string) error {
	if strings.HasPrefix(why, "[rejected]") {
		return ErrRejected
	}
	if !strings.HasPrefix(why, "[remote rejected]") {
		return nil
	}
	race := []string{"cannot lock ref", "failed to update ref", "reference already exists", "is at ", "stale info",
		"incorrect old value", "non-fast-forward", "fetch first", "failed to lock"}
	trouble := []string{"Internal Server Error", "unpacker error", "timeout", "timed out", "shallow update"}
	switch {
	case containsAny(why, race):
		return ErrRejected
	case containsAny(why, trouble):
		return ErrUnavailable
	}
	return ErrProtected
}
