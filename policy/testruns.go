package policy

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// RunsTests reports whether a call's program, script, subcommand or target names tests. Programs that only handle
// files do not count.
func RunsTests(text string) bool {
	call := readCall(text)
	if call.command != "" {
		return commandTests(call.command)
	}
	return saysTest(call.tool)
}

// maxNames limits the words before the test runner's name, as in "docker compose run web pytest".
const maxNames = 6

func commandTests(command string) bool {
	return slices.ContainsFunc(simpleCommands(withoutDocuments(command)), simpleTests)
}

// documentStart matches a here-document's start with its delimiter.
var documentStart = regexp.MustCompile(`<<-?\s*['"\\]?(\w+)`)

func withoutDocuments(command string) string {
	var b strings.Builder
	end := ""
	for line := range strings.Lines(command) {
		if end != "" {
			if strings.HasPrefix(strings.TrimSpace(line), end) {
				end = ""
			}
			continue
		}
		b.WriteString(line)
		if m := documentStart.FindStringSubmatch(line); m != nil {
			end = m[1]
		}
	}
	return b.String()
}

func simpleTests(simple []word) bool {
	for len(simple) > 0 && simple[0].leads() {
		simple = simple[1:]
	}
	if len(simple) == 0 || simple[0].text == "test" { // the shell's own test, not bin/test
		return false
	}
	if slices.ContainsFunc(simple, word.onlyTells) {
		return false
	}
	program := strings.ToLower(path.Base(simple[0].text))
	names := 0
	for _, w := range simple {
		script := names == 1 && interpreter.MatchString(program)
		switch {
		case w.runsTests(program):
			return true
		case script && w.inTests():
			return true
		case w.runsNothing(program), names == maxNames:
			return false
		case !strings.HasPrefix(w.text, "-"):
			names++
		}
	}
	return false
}

func (w word) runsTests(program string) bool {
	switch {
	case slices.Contains(fileTools, program):
		return false
	case w.quoted && interpreter.MatchString(program):
		return commandTests(w.text)
	case strings.HasPrefix(w.text, "-"):
		return w.text == "--test" // node's option
	default:
		return slices.Contains(testTargets[program], w.text) || namesTests(w.text)
	}
}

func (w word) runsNothing(program string) bool {
	if strings.Contains(w.text, ">") {
		return true
	}
	if slices.Contains(builders, program) {
		return false
	}
	return slices.Contains(building, w.text) || slices.Contains(fileTools, w.text)
}

// inTests reports whether a script is in a test folder: node test/index.js.
func (w word) inTests() bool {
	folders := strings.Split(path.Dir(w.text), "/")
	return !slices.Contains(documents, path.Ext(w.text)) && slices.ContainsFunc(folders, saysTest)
}

// onlyTells reports whether an argument makes a runner print something instead of running tests.
func (w word) onlyTells() bool {
	return slices.Contains([]string{"--version", "--help", "--collect-only", "--co", "--listTests", "--no-run"}, w.text)
}

var (
	// builders take targets or folders as arguments; "test" may follow "build".
	builders = strings.Fields("make gmake ninja gradle gradlew mvn mvnw zig just rake")
	// fileTools handle files and data or print. The last ones are shell built-ins.
	fileTools = strings.Fields(`cat bat ls ll tree find fd grep egrep fgrep rg ag ack sed awk nl head tail less more wc sort
		uniq cut tr diff cmp mkdir rmdir rm cp mv touch ln chmod chown stat file du tee patch apply_patch jq yq tar zip unzip
		curl wget scp rsync git gh glab vim vi nano code open ps kill pkill which
		black ruff flake8 mypy pyright pylint isort eslint prettier tsc shellcheck rubocop
		psql mysql sqlite3 createdb dropdb redis-cli
		cd pushd echo printf [ source . export set type read`)
	// building subcommands fetch or build their arguments.
	building = strings.Fields("install i ci add remove uninstall upgrade download build compile vet lint fmt pull push clone")
	// testTargets run tests by the build tool's convention.
	testTargets = map[string][]string{
		"make":    {"check", "distcheck"},
		"gmake":   {"check", "distcheck"},
		"ninja":   {"check"},
		"gradle":  {"check"},
		"gradlew": {"check"},
		"mvn":     {"verify"},
		"mvnw":    {"verify"},
		"r":       {"check"},
		"npm":     {"t"},
		"cargo":   {"t"},
	}
	// documents are extensions of files that never run.
	documents = strings.Fields(".json .md .txt .yml .yaml .toml .log .xml .csv .html .lock .patch .diff .cfg .ini .env")
)

// namesTests reports whether a word names tests or a test runner, and not a document.
func namesTests(word string) bool {
	if strings.Contains(word, "=") {
		return false
	}
	name, _, _ := strings.Cut(path.Base(strings.TrimSuffix(word, "/...")), "@")
	return !slices.Contains(documents, path.Ext(name)) && saysTest(name)
}

// saysTest reports whether a word of a name means tests, as in run_tests, runtests.py, TestTotal or rspec.
func saysTest(name string) bool { return slices.ContainsFunc(parts(name), isTest) }

func isTest(word string) bool {
	for _, ending := range []string{"test", "tests", "spec", "specs", "unit"} {
		if strings.HasSuffix(word, ending) {
			return !slices.Contains([]string{"latest", "contest", "unit"}, word)
		}
	}
	if strings.HasPrefix(word, "test") || strings.HasPrefix(word, "gotest") {
		return true
	}
	return slices.Contains(strings.Fields("jest mocha jasmine karma ava tox nox prove bats busted behave cucumber cypress playwright pest"), word)
}
