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
	// Name is the backend's kind and the CLI's name. Stream is the format of standard output. These fields, Protocols
	// and Version come from config's table of CLIs.
	Name, Stream string
	Protocols    []string // protocols of endpoints that the CLI speaks
	Version      Version  // checked version; zero for the kind "command"
	// Wrote reports whether a line has this CLI's format.
	Wrote func(line gjson.Result) bool
	// Sessions matches valid session ids. If nil, every id is valid.
	Sessions *regexp.Regexp
	// Build adds the CLI's arguments, variables and files to a command.
	Build func(Request) (Launch, error)
	// Parse turns a line of standard output, which may be truncated (maxLine) or garbage, into events. Equal lines
	// give equal events. Nil for streams without structure.
	Parse func(line []byte, emit func(Event))
	// OpenSession opens the CLI's session file in HOME; Parse reads its lines. FoldSession reads its last turn. Both
	// are nil for CLIs without a useful session file.
	OpenSession func(home, session string) (io.ReadCloser, error)
	FoldSession func(r io.Reader, now time.Time) (Session, error)
	// Exit maps an exit code to an ending, empty if unknown, when nothing else explains the exit. It may be nil.
	Exit func(code int) policy.Ending
	// ReadTry finds a failed or repeated request in two lines of standard error. Only the second line is new. Nil for
	// CLIs that report failures on standard output.
	ReadTry func(lines string) (Try, bool)
	// SideModels are aliases of additional models that the CLI uses.
	SideModels []string
	// Unguarded lists slash-separated paths in the checkout that the CLI reads or runs despite all switches. The caller
	// must hide these files or use the base branch's copies.
	Unguarded  []string
	Credential string // path of the CLI's account login below HOME; empty for none
}

// Version is the CLI version that was checked; zero means no check. All CLIs print their version with --version.
type Version struct {
	Checked string // version whose switches and output were checked
	Package string // npm package
}

var versionNumber = regexp.MustCompile(`(?m)(?:^|[ v])(\d{1,9})\.(\d{1,9})\.(\d{1,9})\b`)

// Install returns the command that installs the CLI.
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

// Judge compares the version that a CLI printed with the checked one. order is 0 if they are equal. An older version
// (negative) is an error: it may lack switches that exclude a repository's configuration. A newer or unknown one
// (positive) is a warning.
func (v Version) Judge(output string) (order int, text string) {
	found := versionNumber.FindStringSubmatch(Shorten(output, 4<<10))
	checked := versionNumber.FindStringSubmatch(v.Checked)
	if found == nil || checked == nil {
		line, _, _ := strings.Cut(strings.TrimSpace(Shorten(output, 200)), "\n")
		return 1, fmt.Sprintf("its version is unknown: it printed %q; %s was checked", line, v.Checked)
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
	m, _ := strconv.Atoi(a) // digits only
	n, _ := strconv.Atoi(b)
	return cmp.Compare(m, n)
}

// Request is an agent's task and environment. The operator's secrets are only in Env.
type Request struct {
	Prompt string
	Dir    string // the checkout as the agent sees it; the agent's working directory
	Home   string // HOME as the agent sees it
	// Model and Effort are passed to CLIs that support them; empty means the default.
	Model, Effort string
	// Session is an earlier session of the same CLI and HOME to continue; empty starts a new one.
	Session string
	Argv    []string          // program and first arguments; empty means the CLI's name. Required for the kind "command".
	Env     map[string]string // the operator's variables, including PATH
	// Endpoint is a proxy on loopback to the model. If zero, the CLI signs in with Env or the credential file in HOME.
	// The kind "command" gets it in the variables of the protocol's client library.
	Endpoint Endpoint
	// TestTool is the command line of a stdio MCP server with run_tests; empty for none. The kind "command" gets it in
	// PAWL_TESTS, with --once for a single call without MCP.
	TestTool []string
	// Pictures are paths of attached pictures as the agent sees them, for CLIs that accept pictures.
	Pictures []string
	// Attempt, Thread and Rung are used only by the kind "command".
	Attempt      int
	Thread, Rung string
}

// Command is the process to start, without a shell.
type Command struct {
	Argv  []string
	Env   []string          // the whole environment as NAME=value, sorted
	Stdin string            // written to the process and closed: some CLIs wait forever for more input
	Files map[string]string // written below HOME before the start, by slash-separated relative path
}

// ErrSession means that Request.Session is not a session of the CLI. Retry without it.
var ErrSession = errors.New("start afresh")

// Launch has a CLI's arguments, variables, and files below HOME.
type Launch struct {
	Args       []string
	Env, Files map[string]string
}

// With adds a switch for each non-empty value.
func With(args []string, name string, values ...string) []string {
	for _, value := range values {
		if value != "" {
			args = append(args, name+value)
		}
	}
	return args
}

// Command builds a request's process: the prompt on standard input, HOME, and the operator's variables except those
// that bypass the endpoint. The error wraps ErrSession if the session cannot be continued.
func (a Adapter) Command(r Request) (Command, error) {
	if err := r.Endpoint.check(a.Name, a.Protocols); err != nil {
		return Command{}, err
	}
	if err := a.takesEffort(r.Effort); err != nil {
		return Command{}, err
	}
	if !a.givesSession(r.Session) {
		return Command{}, fmt.Errorf("%q is not a session of %s: %w", r.Session, a.Name, ErrSession)
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

// takesEffort refuses an unknown effort. CLIs without a list accept any.
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

// usual are a CLI's default variables. TZ is UTC because codex prints local reset times without the zone.
var usual = map[string]string{"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "dumb"}

// environ returns a sorted environment for exec. Later maps win.
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

// SafeSession matches UUIDs and similar ids: the session ids of codex, claude, gemini and qwen.
var SafeSession = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

// Endpoint is a proxy on loopback to a CLI's model; zero for none.
type Endpoint struct {
	// Protocol is openai (POST /v1/responses and /v1/chat/completions), anthropic (POST /v1/messages) or gemini (POST
	// /v1beta/models/…).
	Protocol string
	URL      string // http://127.0.0.1:PORT, without a final slash
	// Token is the attempt's token for the proxy. The CLI gets it only by environment variable.
	Token string
}

// TokenVariable names the variable with the token. No CLI or script uses it by default.
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

// Allowed returns the operator's environment without variables that bypass the endpoint.
func (r Request) Allowed() map[string]string {
	env := maps.Clone(r.Env)
	if r.Endpoint != (Endpoint{}) {
		for _, name := range config.Withheld() {
			delete(env, name)
		}
	}
	return env
}

// Variables returns the client library's environment variables for the server and the key.
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

// ToolServer is the name of the test tool's MCP server in CLIs.
const ToolServer = "pawl"

// Timeouts of the test tool in CLIs (defaults start at 60 s). Tests may take 30 minutes; the tool gives up first.
const (
	ToolStartup = 30 * time.Second
	ToolTimeout = 35 * time.Minute
)

// Servers returns Pawl's MCP servers in most CLIs' format. more has a CLI's additional settings.
func (r Request) Servers(more map[string]any) map[string]any {
	if len(r.TestTool) == 0 {
		return map[string]any{}
	}
	server := map[string]any{"command": r.TestTool[0], "args": r.TestTool[1:], "timeout": ToolTimeout.Milliseconds()}
	maps.Copy(server, more)
	return map[string]any{ToolServer: server}
}

// Settings formats a settings file as JSON.
func Settings(settings map[string]any) string {
	text, _ := json.MarshalIndent(settings, "", "  ") // never fails
	return string(text)
}
