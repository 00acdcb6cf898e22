package agent

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/policy"
)

// Adapter describes one CLI.
type Adapter struct {
	// Name is the backend's kind and the CLI's own name; Stream is the format of its standard output. They,
	// Protocols and Version come from config's table of CLIs.
	Name, Stream string
	Protocols    []string // of its endpoints
	Version      Version  // the checked one; zero for the kind "command"
	// Wrote reports whether only this CLI, or one with its format, writes such a line.
	Wrote func(line gjson.Result) bool
	// Sessions matches its session ids; nil if it has none.
	Sessions *regexp.Regexp
	// Build adds the CLI's own arguments, variables and files to a command. It reads only its argument.
	Build func(Request) (Launch, error)
	// Parse turns one line of standard output, which may be cut (see maxLine) or garbage, into events. Equal lines
	// give equal events. Nil for streams without structure.
	Parse func(line []byte, emit func(Event))
	// OpenSession opens the CLI's session file in HOME, whose lines Parse reads, too; FoldSession reads its last
	// turn. Nil without useful files.
	OpenSession func(home, session string) (io.ReadCloser, error)
	FoldSession func(io.Reader) (Session, error)
	// Exit is the ending of an exit code without another explanation, "" for none; may be nil.
	Exit func(code int) policy.Ending
	// ReadTry reads from two lines of standard error, the second of them new, that a request failed and the CLI
	// waits before it asks again, or no longer does; nil for CLIs that report it on standard output.
	ReadTry func(lines string) (Try, bool)
	// SideModels are aliases of the models that the CLI uses in addition to the given one.
	SideModels []string
	// Unguarded are slash-separated paths below the checkout whose code the CLI would run despite all switches: the
	// caller must hide them, or use the base branch's.
	Unguarded  []string
	Credential string // the path below HOME of the CLI's login by account, empty for none
}

// Version is a CLI's checked version; zero checks none. All print theirs for --version.
type Version struct {
	Checked string // the version whose switches and output were checked
	Package string // its npm package
}

var versionNumber = regexp.MustCompile(`(?m)(?:^|[ v])(\d{1,9})\.(\d{1,9})\.(\d{1,9})\b`)

// Install is the command that installs the CLI.
func (v Version) Install() string {
	return fmt.Sprintf("npm install --global %s@%s", v.Package, v.Checked)
}

// Hint tells an operator what to do if the CLI is missing or does not start.
func (v Version) Hint() string {
	if v.Package == "" {
		return "name the program in argv by its full path"
	}
	return v.Install() + ", or name the program in argv"
}

// Judge compares the version that a CLI printed. order is 0 for the checked one; negative for an older one, an
// error, since it may lack the switches that keep a repository's configuration out; positive for a newer or unknown
// one, a warning.
func (v Version) Judge(output string) (order int, text string) {
	found := versionNumber.FindStringSubmatch(Shorten(output, 4<<10))
	checked := versionNumber.FindStringSubmatch(v.Checked)
	if found == nil || checked == nil {
		said, _, _ := strings.Cut(strings.TrimSpace(Shorten(output, 200)), "\n")
		return 1, fmt.Sprintf("its version is unknown: it printed %q; %s was checked", said, v.Checked)
	}
	number := strings.TrimLeft(found[0], " v")
	switch order = slices.CompareFunc(found[1:], checked[1:], compareNumbers); order {
	case 1:
		return order, fmt.Sprintf("version %s is newer than %s, which was checked; it may have changed", number, v.Checked)
	case -1:
		return order, fmt.Sprintf("version %s is older than %s, which was checked, and may lack switches that Pawl relies on: %s", number, v.Checked, v.Install())
	}
	return order, "version " + number
}

func compareNumbers(a, b string) int {
	m, _ := strconv.Atoi(a) // the pattern has digits only
	n, _ := strconv.Atoi(b)
	return cmp.Compare(m, n)
}

// Request is an agent's task and environment. Its only secrets are those that the operator listed in Env.
type Request struct {
	Prompt string
	Dir    string // the checkout's path for the agent; the caller starts the process there
	Home   string // the HOME's path for the agent
	// Model and Effort are passed to CLIs that have them; empty means the default.
	Model, Effort string
	// Session is an earlier session of the same CLI and HOME to continue; empty starts a new one.
	Session string
	Argv    []string          // the program with its first arguments; empty: the CLI's own name. The kind "command" needs it.
	Env     map[string]string // the operator's variables, PATH included
	// Endpoint is the CLI's way to its model: a proxy on loopback with its token. Zero: it signs in by itself, by
	// Env or the credential file in HOME. The kind "command" gets it in the variables of the protocol's client
	// library.
	Endpoint Endpoint
	// TestTool is the command line of a stdio MCP server with run_tests; empty for none. "command" gets it in
	// PAWL_TESTS, with a flag by which it answers one call without the protocol.
	TestTool []string
	// Pictures are attached files, at the agent's paths, for CLIs that take some; others open them by the prompt.
	Pictures []string
	// Attempt, Thread and Rung are for agents of the kind "command".
	Attempt      int
	Thread, Rung string
}

// Command is the process to start. Argv never goes to a shell.
type Command struct {
	Argv  []string
	Env   []string          // the whole environment, as NAME=value, sorted
	Stdin string            // written to the process and then closed: an open one makes some CLIs wait for ever
	Files map[string]string // written below HOME before the start, by slash-separated relative path
}

// ErrSession: Request.Session is not a session of the CLI. The same request without it starts a new one.
var ErrSession = errors.New("start afresh")

// Launch is a CLI's arguments, variables, and files below HOME.
type Launch struct {
	Args       []string
	Env, Files map[string]string
}

// With adds a switch with each value that is not empty.
func With(args []string, name string, values ...string) []string {
	for _, value := range values {
		if value != "" {
			args = append(args, name+value)
		}
	}
	return args
}

// Command builds the process of a request: the prompt on standard input, the operator's variables except those that
// bypass the endpoint, Home as HOME. The error is ErrSession if the session cannot be continued.
func (a Adapter) Command(r Request) (Command, error) {
	if err := r.Endpoint.check(a.Name, a.Protocols); err != nil {
		return Command{}, err
	}
	if err := a.takesEffort(r.Effort); err != nil {
		return Command{}, err
	}
	if !a.givesSession(r.Session) {
		return Command{}, fmt.Errorf("%q is no session of %s: %w", r.Session, a.Name, ErrSession)
	}
	own, err := a.Build(r)
	if err != nil {
		return Command{}, err
	}
	program, env := r.Argv, usual
	if len(program) == 0 {
		program = []string{a.Name}
	}
	if a.Name == config.Command {
		env = nil // the operator's own program gets the operator's environment
	}
	return Command{
		Argv:  slices.Concat(program, own.Args),
		Env:   environ(env, r.Allowed(), own.Env, map[string]string{"HOME": r.Home}),
		Stdin: r.Prompt,
		Files: own.Files,
	}, nil
}

// takesEffort refuses an unknown effort; empty is the default. CLIs without a list take any.
func (a Adapter) takesEffort(effort string) error {
	efforts := config.Efforts(a.Name)
	if effort == "" || slices.Contains(efforts, effort) {
		return nil
	}
	last := len(efforts) - 1
	if last < 1 {
		return nil
	}
	return fmt.Errorf("%q is not an effort of %s: use %s or %s", Shorten(effort, 80), a.Name, strings.Join(efforts[:last], ", "), efforts[last])
}

func (a Adapter) givesSession(session string) bool {
	if session == "" || a.Sessions == nil {
		return true
	}
	return a.Sessions.MatchString(session)
}

// usual are a CLI's variables unless the operator sets them. TZ is UTC because codex prints reset times in the
// local zone without naming it.
var usual = map[string]string{"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "dumb"}

// environ lists an environment for exec, sorted so that equal requests give equal commands. Later maps win.
func environ(layers ...map[string]string) []string {
	all := map[string]string{}
	for _, layer := range layers {
		maps.Copy(all, layer)
	}
	list := make([]string, 0, len(all))
	for _, name := range slices.Sorted(maps.Keys(all)) {
		list = append(list, name+"="+all[name])
	}
	return list
}

// SafeSession matches the session ids of codex, claude and gemini, which are UUIDs.
var SafeSession = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

// Endpoint is a proxy on loopback to a CLI's model; zero for none.
type Endpoint struct {
	// Protocol is openai (POST /v1/responses and /v1/chat/completions), anthropic (POST /v1/messages) or gemini
	// (POST /v1beta/models/…).
	Protocol string
	URL      string // http://127.0.0.1:PORT, without a final slash
	// Token is the attempt's token for the proxy. It reaches the CLI by an environment variable only.
	Token string
}

// TokenVariable carries the token for configurations that can name a variable. No CLI or script uses it by default.
const TokenVariable = "PAWL_ENDPOINT_TOKEN"

func (e Endpoint) OnlyToken() map[string]string {
	if e == (Endpoint{}) {
		return map[string]string{}
	}
	return map[string]string{TokenVariable: e.Token}
}

func (e Endpoint) check(cli string, speaks []string) error {
	switch {
	case e == Endpoint{}:
		return nil
	case !slices.Contains(speaks, e.Protocol):
		return fmt.Errorf("%s cannot use a provider of the protocol %q: give the backend a provider with the protocol %s", cli, e.Protocol, strings.Join(speaks, " or "))
	case e.URL == "" || e.Token == "":
		return fmt.Errorf("the endpoint of %s lacks its URL or its token", cli)
	}
	return nil
}

// Allowed is the operator's environment, except for variables that bypass the endpoint.
func (r Request) Allowed() map[string]string {
	env := maps.Clone(r.Env)
	if r.Endpoint != (Endpoint{}) {
		for _, name := range config.Withheld() {
			delete(env, name)
		}
	}
	return env
}

// Variables tell the protocol's client library its server and key; none for zero.
func (e Endpoint) Variables() map[string]string {
	switch e.Protocol {
	case config.OpenAI:
		return map[string]string{"OPENAI_BASE_URL": e.URL + "/v1", "OPENAI_API_KEY": e.Token}
	case config.Anthropic:
		return map[string]string{"ANTHROPIC_BASE_URL": e.URL, "ANTHROPIC_API_KEY": e.Token}
	case config.Google:
		return map[string]string{"GOOGLE_GEMINI_BASE_URL": e.URL, "GEMINI_API_KEY": e.Token}
	}
	return map[string]string{}
}

// ToolServer is the CLIs' name of the test tool's server.
const ToolServer = "pawl"

// Bounds of the test tool. Tests may take thirty minutes, and the tool gives up before a CLI does, whose defaults
// begin at 60 s.
const (
	ToolStartup = 30 * time.Second
	ToolTimeout = 35 * time.Minute
)

// Servers are Pawl's MCP servers in most CLIs' form, without any if the request has no test tool. more are a CLI's
// additional settings.
func (r Request) Servers(more map[string]any) map[string]any {
	if len(r.TestTool) == 0 {
		return map[string]any{}
	}
	server := map[string]any{"command": r.TestTool[0], "args": r.TestTool[1:], "timeout": ToolTimeout.Milliseconds()}
	maps.Copy(server, more)
	return map[string]any{ToolServer: server}
}

// Settings writes a settings file.
func Settings(settings map[string]any) string {
	text, _ := json.MarshalIndent(settings, "", "  ") // strings, numbers and switches always marshal
	return string(text)
}
