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

// Adapter is what Pawl knows of one CLI.
type Adapter struct {
	// Name is the kind of backend, and the CLI's own name; Stream the format of its standard output. They, Protocols and
	// Version stand in config's table of CLIs.
	Name, Stream string
	Protocols    []string // those of its endpoints
	Version      Version  // the one that was checked; zero for the kind "command"
	// Wrote reports whether a line of a transcript is one that only this CLI writes, or one whose format it writes.
	Wrote func(line gjson.Result) bool
	// Sessions matches the sessions that it gives; nil where it gives none.
	Sessions *regexp.Regexp
	// Build adds to a command what is the CLI's own: its arguments, its variables, its files. It reads nothing but
	// its argument.
	Build func(Request) (Launch, error)
	// Parse turns one line of standard output, which may be cut (see maxLine) or garbage, into events. Equal
	// lines give equal events. Nil for streams without structure.
	Parse func(line []byte, emit func(Event))
	// OpenSession opens what the CLI left in HOME about a session, whose lines Parse reads, too; FoldSession reads
	// what it tells of the last turn. Nil for CLIs that leave nothing worth reading.
	OpenSession func(home, session string) (io.ReadCloser, error)
	FoldSession func(io.Reader) (Session, error)
	// Exit names the ending of an exit code, "" for none, for failures that nothing else explains; may be nil.
	Exit func(code int) policy.Ending
	// ReadTry reads from two lines of standard error, the second of them new, that a request failed and the CLI waits
	// before it asks again, or no longer does; nil for CLIs that tell it on standard output.
	ReadTry func(lines string) (Try, bool)
	// SideModels are aliases of the models that the CLI asks by itself beside the one that it was given.
	SideModels []string
	// Unguarded are slash-separated paths below the checkout from which the CLI would run code in spite of all
	// its switches: the caller must hide them, or give it those of the base branch.
	Unguarded  []string
	Credential string // the slash-separated path below HOME of the CLI's login by account, empty for none
}

// Version is the one of a CLI that Pawl was checked with; zero asks for none. All print theirs for --version.
type Version struct {
	Checked string // the version whose switches and output Pawl was checked with
	Package string // the package that installs the CLI by npm
}

var versionNumber = regexp.MustCompile(`(?m)(?:^|[ v])(\d{1,9})\.(\d{1,9})\.(\d{1,9})\b`)

// Install is the command that installs the CLI.
func (v Version) Install() string {
	return fmt.Sprintf("npm install --global %s@%s", v.Package, v.Checked)
}

// Hint tells an operator what to do where the CLI is missing or does not start.
func (v Version) Hint() string {
	if v.Package == "" {
		return "name the program in argv by its full path"
	}
	return v.Install() + ", or name the program in argv"
}

// Judge says to a person what is to be thought of the version that a CLI printed. order is 0 for the very one that was
// checked; negative for an older one, an error, since it may lack the switches that keep a repository's configuration
// out; positive for a newer one, which may have changed, and where it did not tell: a warning.
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

// Request says what an agent shall do and where. Its only secrets are those that the operator listed in Env.
type Request struct {
	Prompt string
	Dir    string // the checkout as the agent sees it; the caller starts the process there
	Home   string // the agent's own HOME as the agent sees it
	// Model and Effort are passed on where the CLI knows them; empty means its default.
	Model, Effort string
	// Session names an earlier session of the same CLI and HOME to continue; empty starts afresh.
	Session string
	Argv    []string          // the program with its first arguments; empty: the CLI's own name. The kind "command" needs it.
	Env     map[string]string // the environment that the operator allows, PATH included
	// Endpoint is where the CLI finds its model: a proxy on loopback with its token. Zero: it signs in by
	// itself, by Env or the credential file in HOME. The kind "command" gets it in the variables of the
	// protocol's client library.
	Endpoint Endpoint
	// TestTool is the command line of a stdio MCP server with run_tests; empty for none. "command" gets it in PAWL_TESTS,
	// with a flag by which it answers one call without the protocol.
	TestTool []string
	// Pictures are files that people attached, as the agent sees them, for CLIs that take some; others open them by the prompt.
	Pictures []string
	// Attempt, Thread and Rung are told to agents of the kind "command".
	Attempt      int
	Thread, Rung string
}

// Command is what to start. Argv is never handed to a shell.
type Command struct {
	Argv  []string
	Env   []string          // the whole environment, as NAME=value, sorted
	Stdin string            // written to the process and then closed: an open one makes some CLIs wait for ever
	Files map[string]string // written below HOME before the start, by slash-separated relative path
}

// ErrSession: Request.Session is none that the CLI gives. The same request without it starts afresh.
var ErrSession = errors.New("start afresh")

// Launch is what a CLI needs beside its program, its variables by name, its files below HOME.
type Launch struct {
	Args       []string
	Env, Files map[string]string
}

// With adds a switch for each value that is not empty, behind its name.
func With(args []string, name string, values ...string) []string {
	for _, value := range values {
		if value != "" {
			args = append(args, name+value)
		}
	}
	return args
}

// Command turns a request into what to start: the prompt on standard input, the operator's variables without those
// that lead past the endpoint, Home as HOME. The error is ErrSession where the session cannot be continued.
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
		env = nil // the operator's own program, whose environment is the operator's
	}
	return Command{
		Argv:  slices.Concat(program, own.Args),
		Env:   environ(env, r.Allowed(), own.Env, map[string]string{"HOME": r.Home}),
		Stdin: r.Prompt,
		Files: own.Files,
	}, nil
}

// takesEffort refuses an effort that the CLI does not know; empty is its default. CLIs without a list take any.
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

// usual are the variables that a CLI gets unless the operator sets them. TZ is
// UTC because codex prints reset times in the local zone without naming it.
var usual = map[string]string{"TZ": "UTC", "LANG": "C.UTF-8", "TERM": "dumb"}

// environ lists an environment in the form that exec wants, sorted so that
// equal requests give equal commands. Later maps win.
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

// SafeSession matches the sessions of codex, claude and gemini, which are UUIDs.
var SafeSession = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z-]{7,63}$`)

// Endpoint is a proxy on loopback through which a CLI reaches its model; zero for none.
type Endpoint struct {
	// Protocol is openai (POST /v1/responses and /v1/chat/completions), anthropic (POST /v1/messages) or gemini
	// (POST /v1beta/models/…).
	Protocol string
	URL      string // http://127.0.0.1:PORT, without a slash at the end
	// Token lets an attempt use the proxy. It reaches the CLI by an environment variable only.
	Token string
}

// TokenVariable carries the token where a configuration can name a variable. No CLI or script uses it unasked.
const TokenVariable = "PAWL_ENDPOINT_TOKEN"

// OnlyToken is the variable with the token; none for the zero value.
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

// Allowed is the environment that the operator allows, without what leads past the endpoint.
func (r Request) Allowed() map[string]string {
	env := maps.Clone(r.Env)
	if r.Endpoint != (Endpoint{}) {
		for _, name := range config.Withheld() {
			delete(env, name)
		}
	}
	return env
}

// Variables are those by which the protocol's client library finds its server and key; none for zero.
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

// ToolServer is the name under which the CLIs know the server of the test tool.
const ToolServer = "pawl"

// Bounds for the test tool. Tests may take thirty minutes, and the tool itself
// gives up before a CLI does, whose defaults begin at 60 s.
const (
	ToolStartup = 30 * time.Second
	ToolTimeout = 35 * time.Minute
)

// Servers are Pawl's MCP servers as most CLIs are told them, without any where the request has no test tool. more is
// what a CLI wants to know beside.
func (r Request) Servers(more map[string]any) map[string]any {
	if len(r.TestTool) == 0 {
		return map[string]any{}
	}
	server := map[string]any{"command": r.TestTool[0], "args": r.TestTool[1:], "timeout": ToolTimeout.Milliseconds()}
	maps.Copy(server, more)
	return map[string]any{ToolServer: server}
}

// Settings writes a file of settings.
func Settings(settings map[string]any) string {
	text, _ := json.MarshalIndent(settings, "", "  ") // never fails for strings, numbers and switches
	return string(text)
}
