package solver

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"syscall"
	"time"

	"github.com/pawlbot/pawl/internal/agent"
)

// Bounds of looking at the files that an agent names: what is read of one, how
// many are remembered, and how many words of one command are looked up.
const (
	maxSample       = 1 << 20
	maxSampledFiles = 20_000
	maxNamed        = 32
)

// sampler looks at the files of a checkout while an agent works in it. It opens
// nothing but regular files, follows no link out of the checkout, and reads a
// file only when its time or size has changed.
type sampler struct {
	root  *os.Root
	began time.Time
	known map[string]look
}

// look is what a file was like when it was looked at; the zero value is a file
// that was not there.
type look struct {
	at   time.Time
	size int64
}

func newSampler(dir string, began time.Time) (*sampler, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	return &sampler{root: root, began: began, known: map[string]look{}}, nil
}

// complete returns the edits of a call with the state of their files. Of a
// command it returns the edits of the files that it names and that have changed:
// those made through a shell appear in no stream as edits.
func (s *sampler) complete(d agent.Deed) []agent.Edit {
	if len(d.Edits) == 0 {
		return s.shell(d.Wrote)
	}
	edits := make([]agent.Edit, 0, len(d.Edits))
	for _, e := range d.Edits {
		seen, ok := s.sample(e.Path)
		switch {
		case !ok:
		case e.Key == 0:
			e = seen
		default:
			e.State = seen.State
		}
		edits = append(edits, e)
	}
	return edits
}

// sample reads a file that is said to have changed. It is not ok where that
// tells nothing: the file was not written since the last look, as when two
// events arrive together, or it cannot be read.
func (s *sampler) sample(name string) (agent.Edit, bool) {
	now, err := s.look(name)
	before, known := s.known[name]
	if err != nil || known && now == before {
		return agent.Edit{}, false
	}
	if !s.remember(name, now) {
		return agent.Edit{}, false
	}
	if now == (look{}) {
		return agent.FileEdit(name, ""), known
	}
	text, err := s.read(name)
	return agent.FileEdit(name, text), err == nil
}

func (s *sampler) remember(name string, l look) bool {
	if _, known := s.known[name]; !known && len(s.known) >= maxSampledFiles {
		return false
	}
	s.known[name] = l
	return true
}

// errUnread says that a file is none that is read.
var errUnread = errors.New("no regular file of up to 1 MiB")

// look asks for the time and size of a file; a missing one is the zero look.
func (s *sampler) look(name string) (look, error) {
	info, err := s.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return look{}, nil
	case err != nil:
		return look{}, err
	case !info.Mode().IsRegular() || info.Size() > maxSample:
		return look{}, errUnread
	}
	return look{at: info.ModTime(), size: info.Size()}, nil
}

func (s *sampler) read(name string) (string, error) {
	// O_NONBLOCK: a pipe that the agent put in its place must not wait.
	f, err := s.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return "", errors.Join(errUnread, err)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxSample))
	return string(b), err
}

// shell returns the edits of the files that a command names and that were
// written since they were last looked at, or since the attempt began.
func (s *sampler) shell(command string) []agent.Edit {
	var edits []agent.Edit
	for _, name := range s.named(command) {
		now, err := s.look(name)
		before, known := s.known[name]
		if err != nil || now == (look{}) && !known || now == before {
			continue
		}
		if !known && !now.at.After(s.began) {
			s.remember(name, now)
			continue
		}
		if e, ok := s.sample(name); ok {
			edits = append(edits, e)
		}
	}
	return edits
}

// apart separates the words of a command in whatever layers of quoting.
const apart = " \t\r\n'\"`;|&<>()[]{}=,:$\\"

// named are the words of a command that may be files of the checkout, without
// what commands print into: a log that is written again is no edit.
func (s *sampler) named(command string) []string {
	command = strings.ReplaceAll(command, `\n`, " ")
	var names []string
	seen := map[string]bool{}
	for _, word := range strings.FieldsFunc(command, func(r rune) bool { return strings.ContainsRune(apart, r) }) {
		word = strings.TrimPrefix(word, s.root.Name()+"/")
		if strings.HasPrefix(word, "-") || strings.HasPrefix(word, "/") {
			continue
		}
		word = path.Clean(word)
		switch path.Ext(word) {
		case ".log", ".out", ".tmp":
			continue
		}
		if word == "." || strings.HasPrefix(word, "../") || strings.HasPrefix(word, ".git/") || seen[word] {
			continue
		}
		seen[word] = true
		if names = append(names, word); len(names) == maxNamed {
			break
		}
	}
	return names
}
