package solver

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
)

// shown are the files of the host that an agent may read beside the system's.
func (s *step) shown(ws *git.Workspace, tool []string) []string {
	list := append([]string{ws.Objects}, s.Config.Sandbox.ReadOnly...)
	if len(tool) > 0 {
		list = append(list, tool[0])
	}
	return list
}

// login shows an agent the login of its account, where the operator wants it so.
func (s *step) login(b config.Backend, adapter agent.Adapter, home string, spec *sandbox.Spec) error {
	if b.CredentialFile == "" || adapter.Credential == "" {
		return nil
	}
	// The place is made here: what an earlier attempt left there, such as a link
	// that leads out of HOME, would be followed otherwise.
	if err := writeFiles(home, map[string]string{adapter.Credential: ""}); err != nil {
		return err
	}
	if s.Sandbox.Mode() != sandbox.None {
		to := filepath.Join(home, filepath.FromSlash(adapter.Credential))
		spec.Mounts = append(spec.Mounts, sandbox.Mount{From: b.CredentialFile, To: to})
		return nil
	}
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	if err := root.Remove(adapter.Credential); err != nil {
		return err
	}
	return root.Symlink(b.CredentialFile, adapter.Credential)
}

// writeFiles writes an agent's own configuration below its HOME. An earlier
// attempt may have left anything there: nothing outside of HOME is reached, and
// what is in the way is removed.
func writeFiles(home string, files map[string]string) error {
	root, err := os.OpenRoot(home)
	if err != nil {
		return err
	}
	defer root.Close()
	for name, text := range files {
		if err := makeWay(root, name); err != nil {
			return err
		}
		f, err := root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
		if err != nil {
			return err
		}
		_, err = f.WriteString(text)
		if err := errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return nil
}

// makeWay makes the folders of a file below a root and removes what is in its
// place or in theirs.
func makeWay(root *os.Root, name string) error {
	parts := strings.Split(name, "/")
	for i := range parts[1:] {
		dir := strings.Join(parts[:i+1], "/")
		if info, err := root.Lstat(dir); err == nil && !info.IsDir() {
			if err := root.Remove(dir); err != nil {
				return err
			}
		}
		if err := root.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return root.RemoveAll(name)
}
