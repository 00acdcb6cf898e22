package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/server"
)

type secretPlace struct{ path, holds string }

// secrets warns of secret files that every user can read.
func (e *exam) secrets(context.Context) (all []Finding) {
	for _, place := range e.secretPlaces() {
		can := everybodyCan(place.path)
		if can == "" {
			continue
		}
		all = append(all, warning(
			fmt.Sprintf("every user of this machine can %s %s, which holds %s", can, place.path, place.holds),
			"chmod o-rwx "+config.CommandLine([]string{place.path}),
		)...)
	}
	if len(all) == 0 {
		return ok("no secret is open to every user of this machine")
	}
	return all
}

func (e *exam) secretPlaces() (all []secretPlace) {
	if keys := e.cfg.LiteralSecrets(); len(keys) > 0 {
		all = append(all, secretPlace{e.file, strings.Join(keys, ", ")})
	}
	all = append(all,
		secretPlace{e.cfg.GitHub.App.PrivateKeyFile, "the App's private key"},
		secretPlace{e.cfg.Gateway.KeyFile, "the gateway's TLS key"},
		secretPlace{e.cfg.Database.Path, "the log of all threads and the key of the pages' sessions"},
	)
	for _, b := range e.cfg.Backends {
		for _, b := range e.cfg.EachAccount(b) {
			all = append(all, secretPlace{b.CredentialFile, "the login of backend " + b.Name})
		}
	}
	all = append(all, e.environmentFiles()...)
	all = append(all, e.dataFolders()...)
	return slices.DeleteFunc(all, func(p secretPlace) bool { return p.path == "" })
}

// dataFolders returns data_dir, or Pawl's folders in it if it also holds the configuration.
func (e *exam) dataFolders() (all []secretPlace) {
	const holds = "clones of repositories and transcripts"
	if e.cfg.DataDir != filepath.Dir(e.file) {
		return []secretPlace{{e.cfg.DataDir, holds}}
	}
	for _, dir := range server.Folders(e.cfg.DataDir) {
		for _, name := range []string{"attempts", "repos"} {
			all = append(all, secretPlace{filepath.Join(dir, name), holds})
		}
	}
	return all
}

// usualEnvironmentFiles come from config/deploy/pawl.service, Debian and Fedora.
var usualEnvironmentFiles = []string{"/etc/pawl.env", "/etc/default/pawl", "/etc/sysconfig/pawl"}

// environmentFiles returns the usual files, and files next to the configuration, if they set a secret's variable.
func (e *exam) environmentFiles() (all []secretPlace) {
	names := e.cfg.SecretVariables()
	if len(names) == 0 {
		return nil
	}
	sets := regexp.MustCompile(`(?m)^\s*(?:export\s+)?(` + strings.Join(names, "|") + `)=["' \t]*[^"'\s]`)
	// Glob fails only for a malformed pattern.
	beside, _ := filepath.Glob(filepath.Join(filepath.Dir(e.file), "*.env"))
	for _, file := range slices.Concat(usualEnvironmentFiles, beside) {
		// A file that this user cannot read is not readable by everyone.
		text, _ := os.ReadFile(file)
		if found := sets.FindSubmatch(text); found != nil {
			all = append(all, secretPlace{file, string(found[1])})
		}
	}
	return all
}

// everybodyCan returns how every user of this machine can access a file, or an empty string.
func everybodyCan(path string) string {
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return ""
	}
	info, err := os.Stat(real)
	if err != nil || !reachable(filepath.Dir(real)) {
		return ""
	}
	mode := info.Mode()
	reads := mode&0o004 != 0
	if mode.IsDir() {
		reads = mode&0o005 != 0
	}
	switch writes := mode&0o002 != 0; {
	case reads && writes:
		return "read and change"
	case reads:
		return "read"
	case writes:
		return "change"
	}
	return ""
}

func reachable(dir string) bool {
	for {
		info, err := os.Stat(dir)
		if err != nil || info.Mode()&0o001 == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
		dir = filepath.Dir(dir)
	}
}

// ports warns of unavailable addresses. It skips the check if a server of this data_dir runs, which uses them.
func (e *exam) ports(context.Context) (all []Finding) {
	if len(server.Running(e.cfg.DataDir)) > 0 {
		return nil
	}
	for _, one := range []struct{ key, address string }{
		{"server.address", e.cfg.HTTP.Address},
		{"server.pages", e.cfg.HTTP.Pages},
		{"gateway.address", e.cfg.Gateway.Address},
	} {
		if one.address == "" {
			continue // not used, or a free port for the pages
		}
		listener, err := server.Listen(one.key, one.address)
		if cannot, failed := errors.AsType[*server.ListenError](err); failed {
			all = append(all, warning(cannot.Problem(), cannot.Hint())...)
			continue
		}
		_ = listener.Close() // only a test
	}
	return all
}

// leastInodes is the number of free inodes below which doctor warns: two checkouts of Linux, with 90,000 files each.
const leastInodes = 200_000

// inodes checks the free inodes of data_dir; some file systems report 0.
func inodes(free, total uint64, dir string) []Finding {
	if total == 0 || free >= leastInodes {
		return nil
	}
	return warning(
		fmt.Sprintf("%d more files can be created below %s: the file system has few free inodes", free, dir),
		"remove files there, or give data_dir a file system with more inodes (df -i shows them): each attempt needs one for every file of a checkout",
	)
}
