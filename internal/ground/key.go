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

// Key returns the key of a layer. parts must hold everything that determines its content.
func Key(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))[:24]
}

// Platform describes the processor and the system's release, because built programs depend on both.
func Platform() string {
	release, _ := os.ReadFile("/etc/os-release") // if it is unreadable, the processor must suffice
	return runtime.GOOS + "/" + runtime.GOARCH + "\n" + string(release)
}

// tools lists the files that determine what a build tool installs, in order of preference. A file without a command
// only contributes to the key.
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

// Decides reports whether a file pins what a setup installs. go.mod does not: go.sum does.
func Decides(file string) bool {
	name := path.Base(file)
	return name != "go.mod" && slices.ContainsFunc(tools, func(t struct{ file, command string }) bool {
		ok, _ := path.Match(t.file, name) // the patterns of tools are well-formed
		return ok
	})
}

// Propose returns the usual setup command for these files, and the file that it depends on. The proposal is empty if no
// command is known. Only files in the root count.
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
