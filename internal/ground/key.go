package ground

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"

	"github.com/pawlbot/pawl/policy"
)

// Key names a layer by all that decides what is in it.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// Platform is what programs were built for: the processor and the system's release.
func Platform() string {
	release, _ := os.ReadFile("/etc/os-release") // without it the processor says enough
	return runtime.GOOS + "/" + runtime.GOARCH + "\n" + string(release)
}

// tools are the files by which a build tool knows what to bring, in the order of what is usual where a repository
// has several, with the command for it; none where the file is only part of a key.
var tools = []struct{ file, command string }{
	{"pnpm-lock.yaml", "pnpm install --frozen-lockfile"},
	{"yarn.lock", "yarn install --frozen-lockfile"},
	{"package-lock.json", "npm ci"},
	{"uv.lock", "uv sync --frozen"},
	{"poetry.lock", "poetry install"},
	{"requirements.txt", "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"},
	{"requirements*.txt", ""},
	{"go.mod", "go mod download"},
	{"go.sum", ""},
	{"Cargo.lock", "cargo fetch --locked"},
	{"Gemfile.lock", "bundle install"},
	{"pom.xml", "mvn -B dependency:go-offline"},
	{"build.gradle", "gradle dependencies"},
	{"build.gradle.kts", "gradle dependencies"},
	{"settings.gradle*", ""},
	{"gradle.lockfile", ""},
	{"libs.versions.toml", ""},
}

// Decides reports whether the contents of a file decide what a setup brings.
func Decides(file string) bool {
	name := path.Base(file)
	return name != "go.mod" && slices.ContainsFunc(tools, func(t struct{ file, command string }) bool {
		ok, _ := path.Match(t.file, name) // the patterns of tools are well-formed
		return ok
	})
}

// Propose says which setup is usual for a repository with these files, and for which of them; empty where nothing
// is known. Only files in the root count: what a folder needs its own people know.
func Propose(files []string) (p policy.Proposal) {
	for _, t := range tools {
		if t.command == "" || !slices.Contains(files, t.file) {
			continue
		}
		p = policy.Proposal{Command: t.command, File: t.file}
		if strings.HasPrefix(p.Command, "gradle") && slices.Contains(files, "gradlew") {
			p.Command = "./gradlew dependencies"
		}
		return p
	}
	return p
}
