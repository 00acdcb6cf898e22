package attempt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pawlbot/pawl/internal/agent"
	"github.com/pawlbot/pawl/internal/agent/clis"
	"github.com/pawlbot/pawl/internal/crash"
	"github.com/pawlbot/pawl/internal/egress"
	"github.com/pawlbot/pawl/internal/gateway"
	"github.com/pawlbot/pawl/internal/ground"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/policy"
)

// maxTranscript limits an agent's stored output, in bytes. The longest recorded healthy session is below 1 MiB.
const maxTranscript = 256 << 20

func (c *checkout) Agent(ctx context.Context) (cause, err error) {
	b := c.backend()
	run, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c.adapter, err = clis.For(b.Kind, b.Stream)
	if err == nil {
		err = c.open(run, cancel)
	}
	if err != nil {
		c.Report(notStarted(err), c.monitor.circles.Edits())
		return nil, nil
	}
	endNotes := c.keepNoting(run, cancel)
	c.Receipt.Transcript = filepath.Join(c.Env.attemptDir(c.Thread, c.N), transcriptFile)
	report, cause, err := c.runSteered(run, cancel)
	if c.Decision.Purpose != policy.ToChange && c.adapter.Parse == nil { // plain text is the answer
		report.FinalMessage = render.Tail(report.Printed(), maxAnswer)
	}
	c.Report(report, c.monitor.circles.Edits())
	if report.Exit.Exceeded != "" {
		c.Receipt.Reasons = append(c.Receipt.Reasons, report.Exit.Exceeded)
	}
	c.Receipt.Trajectory = c.monitor.trajectory
	c.Receipt.Trajectory.Bytes = report.OutputBytes
	c.models.close(&c.Receipt)
	if early, ok := errors.AsType[cut](cause); ok {
		c.cutOff(early)
		cause = nil
	}
	// Write the use now: verify commands may take long, and the process may end meanwhile.
	endNotes()
	c.note(ctx, spentIn(c.Receipt))
	c.endWindows(ctx)
	c.ranTests()
	if err == nil && c.monitor.unrestored != nil {
		cause = cmp.Or[error](cause, unusable{c.monitor.unrestored})
	}
	return cause, err
}

func (c *checkout) readSession(report *agent.Report) {
	if c.adapter.OpenSession == nil || report.SessionID == "" {
		return
	}
	home := c.Env.homeOf(c.Thread)
	session, err := c.adapter.ReadSession(home, report.SessionID, c.Env.Now())
	if err != nil {
		c.Log.Info().Err(err).Msg("the agent's session file was not read")
	} else {
		report.Refine(session, c.Env.Now())
		c.models.claimed.add(session.Windows)
	}
	dir, _ := c.Env.inside(c.ws.Dir, home)
	c.monitor.session(c.adapter, home, dir, report.SessionID)
}

// cutOff records why Pawl cut off an attempt whose work counts.
func (c *checkout) cutOff(early cut) {
	r := &c.Receipt
	r.Reasons = append(r.Reasons, early.why)
	if early.ending == "" || r.Ending == policy.Completed { // the agent had finished
		return
	}
	r.Ending, r.Limit, r.Detail = early.ending, nil, early.why
	if early.ending == policy.NoAnswer && c.models.last.Ending == policy.Disconnected {
		r.Ending = policy.Disconnected // error pages and empty streams are not model answers
	}
	r.Paused, r.Rambled = early.paused, early.rambled
}

// runIn runs the agent to its end. Files that the CLI would execute despite its switches are withheld until then.
func (c *checkout) runIn(run context.Context, cancel context.CancelCauseFunc) (_ agent.Report, cause, err error) {
	spec, refused, err := c.spec(run)
	if err != nil {
		cause, err = endedBy(run, err)
		return agent.Report{}, cause, err
	}
	if refused != nil {
		return notStarted(refused), nil, nil
	}
	held, err := c.ws.Withhold(c.adapter.Unguarded)
	defer func() {
		var replaced []string
		replaced, c.monitor.unrestored = c.ws.Restore(context.WithoutCancel(run), held)
		c.leaveOut("configuration of the agent", replaced...)
	}()
	if err != nil {
		return agent.Report{}, nil, err
	}
	out, room, err := c.openTranscript()
	if err != nil {
		return agent.Report{}, nil, err
	}
	defer out.Close()
	steered := make(chan struct{})
	run, endWatch := c.watch(run, sync.OnceFunc(func() { close(steered) }))
	defer endWatch()
	transcript := io.Writer(out)
	if c.adapter.Parse == nil {
		plain := &plainTexts{authored: func(text string, ran bool) { c.authored(run, text, ran) }}
		defer plain.end()
		transcript = io.MultiWriter(out, plain)
	}
	b := c.backend()
	hosts := append(slices.Clone(c.Ground.Effective.Network.Agent), b.Hosts()...)
	endNetwork := c.restrictNetwork(&spec, c.models.session.Load(), hosts, "network.agent")
	defer func() {
		t := endNetwork()
		c.Receipt.Sent += t.Sent
		c.Receipt.Received += t.Received
		for _, host := range t.Refused {
			if !slices.Contains(c.Receipt.RefusedHosts, host) {
				c.Receipt.RefusedHosts = append(c.Receipt.RefusedHosts, host)
			}
		}
	}()
	proc, err := c.Env.Sandbox.Start(run, spec)
	if cause := context.Cause(run); err != nil && cause != nil {
		return agent.Report{}, cause, nil
	}
	if err != nil {
		return notStarted(err), nil, nil
	}
	crash.Point("agent_started")
	dir, _ := c.Env.inside(c.ws.Dir, "")
	show := c.shows()
	report, err := agent.Run(run, process(proc), c.adapter, agent.RunOptions{
		Dir: dir, Total: b.Timeout, Before: c.steering.before.Duration, Idle: b.IdleTimeout, Startup: b.StartupTimeout,
		Interrupt: steered, InterruptWait: steerWait,
		Transcript: transcript, MaxTranscript: room, Now: c.Env.Now, Alive: func(tell func()) { c.models.living.Store(tell) },
		OnCall:  func(call agent.Call) { c.monitor.call(call, cancel) },
		OnPrint: func(line string) { show(agent.Event{Kind: agent.Message, Text: line}) },
		OnEvent: func(e agent.Event) {
			show(e)
			c.monitor.event(e, cancel)
			c.models.event(e)
			c.models.claimed.add(e.Windows)
			c.authored(run, e.Authored, executed(e))
		},
	})
	crash.Point("agent_done")
	return report, context.Cause(run), err
}

// shows forwards the agent's events without keys and with relative paths.
func (c *checkout) shows() func(agent.Event) {
	if c.Env.OnEvent == nil {
		return func(agent.Event) {}
	}
	clean := c.redactor()
	dir, _ := c.Env.inside(c.ws.Dir, "")
	return func(e agent.Event) {
		e.Text = clean.Redact(e.Text)
		e.Does = strings.ReplaceAll(clean.Redact(e.Does), dir+"/", "")
		e.Edits = slices.Clone(e.Edits)
		for i := range e.Edits {
			e.Edits[i].Path = strings.TrimPrefix(e.Edits[i].Path, dir+"/")
		}
		c.Env.OnEvent(e)
	}
}

// spec builds the agent's process and writes its configuration to HOME. refused is an error that the operator must
// fix.
func (c *checkout) spec(ctx context.Context) (spec sandbox.Spec, refused, err error) {
	b, home := c.backend(), c.Env.homeOf(c.Thread)
	files := map[string]string{}
	tool, err := c.testTool(ctx, files)
	if err != nil {
		return spec, nil, err
	}
	dir, at := c.Env.inside(c.ws.Dir, home)
	request := agent.Request{
		Prompt: c.prompt(), Dir: dir, Home: at, Model: b.Model, Effort: c.Effort, Session: c.Session, Argv: b.Argv, Env: c.environment(b.Env, c.footing.image),
		Endpoint: c.models.endpoint, TestTool: tool, Attempt: c.N, Thread: c.Thread.String(), Rung: strconv.Itoa(c.Decision.Rung),
	}
	for _, name := range c.Pictures {
		request.Pictures = append(request.Pictures, path.Join(at, contextDir, name))
	}
	cmd, err := c.adapter.Command(request)
	if errors.Is(err, agent.ErrSession) {
		c.Log.Warn().Err(err).Msg("the session has no id to continue it; the agent starts a new one")
		request.Session, request.Prompt = "", c.Prompt
		cmd, err = c.adapter.Command(request)
	}
	if err != nil {
		return spec, err, nil
	}
	maps.Copy(files, cmd.Files)
	for name, text := range c.ContextFiles {
		files[contextDir+"/"+name] = text
	}
	if err := writeFiles(home, files); err != nil {
		return spec, nil, err
	}
	spec = sandbox.Spec{
		Argv: cmd.Argv, Dir: c.ws.Dir, Home: home, Env: cmd.Env, ReadOnly: slices.Concat(c.Config.Sandbox.ReadOnly, tool[:min(1, len(tool))]),
		Stdin: []byte(cmd.Stdin), ID: c.Env.ProcessPrefix() + fmt.Sprintf("%s/%d", c.Thread, c.N),
	}
	if c.stand(&spec, c.footing); spec.Root != "" {
		spec.HostPath = c.environment(nil, ground.Image{})["PATH"]
	}
	if err := c.login(home, &spec); err != nil {
		return spec, err, nil
	}
	return spec, nil, nil
}

func process(p *sandbox.Process) agent.Process {
	return agent.Process{
		Stdout: p.Stdout(), Stderr: p.Stderr(), Kill: p.Kill,
		Wait: func() (agent.Exit, error) {
			e, err := p.Wait()
			return agent.Exit(e), err
		},
	}
}

// notStarted reports an agent that cannot be started, for example without its program or provider. The operator must fix
// the cause.
func notStarted(err error) agent.Report {
	return agent.Report{Ending: policy.Misconfigured, Failure: err.Error(), Reasons: []string{"the agent could not be started: " + err.Error()}}
}

// quiet turns off update notices and telemetry, which would appear as blocked requests. The tools document these
// variables.
var quiet = map[string]string{
	"CHECKPOINT_DISABLE":            "1", // HashiCorp
	"DO_NOT_TRACK":                  "1", // consoledonottrack.com
	"DOTNET_CLI_TELEMETRY_OPTOUT":   "1",
	"GH_NO_UPDATE_NOTIFIER":         "1",
	"NEXT_TELEMETRY_DISABLED":       "1",
	"NO_UPDATE_NOTIFIER":            "1", // npm package update-notifier
	"NPM_CONFIG_UPDATE_NOTIFIER":    "false",
	"PIP_DISABLE_PIP_VERSION_CHECK": "1",
}

// environment returns a search path, a locale, the user's name, and the variables of the image and the repository. It
// adds the variables that the operator listed. The image may set another search path.
func (a *Attempt) environment(names []string, image ground.Image) map[string]string {
	env := map[string]string{"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8", "TERM": "dumb", "TZ": "UTC"}
	maps.Copy(env, quiet)
	if name := a.Env.Sandbox.User(); name != "" {
		env["USER"], env["LOGNAME"] = name, name
	}
	for _, v := range image.Env {
		name, value, _ := strings.Cut(v, "=")
		env[name] = value
	}
	maps.Copy(env, a.Ground.Effective.Environment.Env)
	for _, n := range append([]string{"PATH"}, names...) {
		if n == "PATH" && image.Root != "" {
			continue
		}
		if v, ok := a.Env.Lookup(n); ok {
			env[n] = v
		}
	}
	return env
}

// The gateway's and the proxy's ports in a program's own network are unassigned (IANA) and outside the kernel's
// ephemeral range.
const (
	gatewayPort = 29401
	proxyPort   = 29402
)

// restrictNetwork gives a program its own network with a proxy for the allowed hosts and, with a session, the gateway.
// where names the list's key. Call the returned function after the program has ended.
func (a *Attempt) restrictNetwork(spec *sandbox.Spec, session *gateway.Session, list []policy.HostRule, where string) (end func() egress.Traffic) {
	if !a.Env.Sandbox.Networks() {
		return func() egress.Traffic { return egress.Traffic{} }
	}
	proxy := egress.New(egress.Options{Allow: list, Private: a.Config.Network.Private, Where: where, Download: int64(a.Config.Network.Download)})
	ports, serve := []int{proxyPort}, []func(net.Listener){proxy.Serve}
	if session != nil {
		ports, serve = append(ports, gatewayPort), append(serve, session.Serve)
	}
	spec.Env = egress.Clients(strconv.Itoa(proxyPort), spec.Env)
	spec.Network = &sandbox.Network{Ports: ports, Serve: func(listeners []net.Listener) {
		for i, l := range listeners {
			go serve[i](l)
		}
	}}
	return proxy.Close
}

func noteRefused(r *policy.Receipt, hosts []string, where string) {
	for _, host := range hosts {
		if entry := policy.RefusedIn(host, where); !slices.Contains(r.RefusedHosts, entry) {
			r.RefusedHosts = append(r.RefusedHosts, entry)
		}
	}
}
