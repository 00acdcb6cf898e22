package git

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/pawlbot/pawl/internal/render"
)

// Limits of the survey. They exceed the size of any real project, and limit the walk to seconds.
const (
	maxEntries = 2_000_000 // files and directories, including ignored ones
	maxDepth   = 200       // nested directories
	maxRules   = 1 << 20   // bytes of one .gitignore or .gitattributes, which git reads whole
)

// survey walks the work tree below the directory name, which is open as dir, before git does. It refuses pipes and
// other special files if git would read them and hang: as rules, or in a nested repository. It reports files that git
// would skip silently.
func (s *sorter) survey(ctx context.Context, dir *os.Root, name string, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("%w: more than %d nested directories at %.200q", ErrUnsafe, maxDepth, name)
	}
	list, err := dir.Open(".")
	if err != nil {
		s.leave(name, "unreadable")
		return nil
	}
	defer list.Close()
	for {
		batch, err := list.ReadDir(1000)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if s.entries += len(batch); s.entries > maxEntries {
			return tooLarge("the work tree has more than %d entries", maxEntries)
		}
		for _, e := range batch {
			if err := s.surveyEntry(ctx, dir, path.Join(name, e.Name()), e, depth); err != nil {
				return err
			}
		}
	}
}

func (s *sorter) surveyEntry(ctx context.Context, dir *os.Root, at string, e fs.DirEntry, depth int) error {
	if at == ".git" { // the agent's own, which the host never reads
		return nil
	}
	if !e.IsDir() {
		return s.surveyFile(at, e)
	}
	sub, err := dir.OpenRoot(e.Name())
	if err != nil {
		s.leave(at, "unreadable")
		return nil
	}
	defer sub.Close()
	return s.survey(ctx, sub, at, depth+1)
}

func (s *sorter) surveyFile(at string, e fs.DirEntry) error {
	rules := isRules(e.Name())
	mode := e.Type()
	s.attributes = s.attributes || e.Name() == attributesFile
	if mode.IsRegular() || mode == fs.ModeSymlink {
		if rules {
			return checkRules(at, e)
		}
		return nil
	}
	info, err := e.Info()
	if err == nil && whiteout(info) {
		return nil
	}
	insideGit := slices.Contains(strings.Split(at, "/"), ".git")
	if rules || insideGit {
		return fmt.Errorf("%w: git would hang on %.200q, which is not a regular file (%s)", ErrUnsafe, at, mode)
	}
	s.leave(at, "not a file: "+mode.String())
	return nil
}

// attributesFile is the name of git's attributes files.
const attributesFile = ".gitattributes"

func isRules(name string) bool {
	switch name {
	case ".gitignore", attributesFile:
		return true
	}
	return false
}

func checkRules(at string, e fs.DirEntry) error {
	info, err := e.Info()
	if err == nil && info.Size() > maxRules {
		return fmt.Errorf("%w: %.200q has %d bytes; git rules may have at most %d", ErrUnsafe, at, info.Size(), maxRules)
	}
	return nil
}

// badLink says why the symbolic link at name must not be committed, or returns empty. It checks the target's text
// and the current destination, because a link may leave the tree through other links.
func (s *sorter) badLink(name string) string {
	target, err := s.root.Readlink(name)
	if err != nil {
		return "unreadable"
	}
	if looksLikeRules(path.Base(name)) {
		return "git refuses this name for a link"
	}
	joined := path.Join(path.Dir(name), target)
	outside := joined == ".." || strings.HasPrefix(joined, "../")
	if outside || path.IsAbs(target) {
		return "a link to a place outside the tree: " + render.Short(target, 200)
	}
	for part := range strings.SplitSeq(joined, "/") {
		if looksLikeDotGit(part) {
			return "a link into a .git directory: " + render.Short(target, 200)
		}
	}
	_, err = s.root.Stat(name)
	if escapes(err) {
		return "a link to a place outside the tree: " + render.Short(target, 200)
	}
	return ""
}

// escapes recognises os.Root's error for a path that leads out of it.
func escapes(err error) bool {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return false
	}
	return strings.Contains(err.Error(), "escapes")
}

// looksLikeDotGit reports whether some file system would open .git under this name. The rules are git's (is_hfs_dotgit
// in utf8.c and is_ntfs_dotgit in path.c).
func looksLikeDotGit(name string) bool {
	if name == "" || len(name) > 64 {
		return false
	}
	switch fold(name) {
	case ".git", "git~1":
		return true
	}
	return false
}

// looksLikeRules reports whether git itself would read a file of this name; git refuses such a link (verify_path in
// read-cache.c).
func looksLikeRules(name string) bool {
	folded := fold(name)
	if folded == ".gitmodules" {
		return true
	}
	return strings.HasPrefix(folded, "gitmod~") || strings.HasPrefix(folded, "gi7eba~")
}

// invisible are the characters that HFS+ drops (next_hfs_char in utf8.c).
var invisible = &unicode.RangeTable{R16: []unicode.Range16{
	{Lo: 0x200c, Hi: 0x200f, Stride: 1},
	{Lo: 0x202a, Hi: 0x202e, Stride: 1},
	{Lo: 0x206a, Hi: 0x206f, Stride: 1},
	{Lo: 0xfeff, Hi: 0xfeff, Stride: 1},
}}

// fold returns a name as the most lenient file systems compare it. HFS+ ignores invisible characters; NTFS ignores
// trailing spaces, dots and streams; both ignore case.
func fold(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name, _, _ = strings.Cut(name, `\`)
	name = strings.TrimRight(name, " .")
	return strings.ToLower(strings.Map(func(r rune) rune {
		if unicode.Is(invisible, r) {
			return -1
		}
		return r
	}, name))
}
