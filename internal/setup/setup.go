package setup

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
)

// setupTime limits the wait for the user. GitHub's code is valid for an hour.
const setupTime = 30 * time.Minute

// maxAppName limits an App's name, in characters (docs.github.com, "Registering a GitHub App").
const maxAppName = 34

type Flags struct {
	URL     string // the server's URL for GitHub; empty to poll
	Pages   string // the pages' URL; empty for this machine
	GitHub  string
	Org     string // the organization that owns the App; empty for the signed-in account
	Name    string // the App's name
	Config  string // the file to write
	Backend string // the first agent, one of config.CLIs
	// Listen is the page's address. With Headless, the user pastes GitHub's answer instead.
	Listen   string
	Headless bool
}

type Setup struct {
	Flags
	version string
	public  *url.URL // nil for none
	hub     hub
}

// orgPattern matches the names of GitHub accounts.
var orgPattern = regexp.MustCompile(`^[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})$`)

// New checks the flags. Run sends version to GitHub as part of the user agent.
func New(f Flags, version string) (Setup, error) {
	f.Name = strings.TrimSpace(f.Name)
	s := Setup{Flags: f, version: version}
	var err error
	if f.URL != "" {
		if s.public, err = address("--url", f.URL); err != nil {
			return s, err
		}
	}
	if s.Pages != "" {
		pages, err := address("--pages-url", s.Pages)
		if err != nil {
			return s, err
		}
		s.Pages = pages.String()
	}
	if s.hub, err = hubOf(f.GitHub); err != nil {
		return s, err
	}
	switch {
	case f.Org != "" && !orgPattern.MatchString(f.Org):
		return s, fmt.Errorf("--org: %q is not a valid name of a GitHub organization", f.Org)
	case f.Name == "" || len([]rune(f.Name)) > maxAppName:
		return s, fmt.Errorf("--name: an App's name has 1 to %d characters", maxAppName)
	case !slices.Contains(config.CLIs(), f.Backend):
		return s, fmt.Errorf("--backend: %q is not one of %s", f.Backend, strings.Join(config.CLIs(), ", "))
	case f.Config == "":
		return s, errors.New("--config: name the file to write")
	}
	return s, nil
}

// address parses a URL without user, query or fragment. It accepts plain http only for this machine, because the
// requests contain secrets.
func address(flag, text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil {
		return nil, fmt.Errorf("%s: not an address", flag)
	}
	u.Path = strings.TrimRight(u.Path, "/")
	ip := net.ParseIP(u.Hostname())
	loopback := u.Hostname() == "localhost" || ip.IsLoopback()
	isURL := u.Host != "" && u.Opaque == ""
	extra := u.User != nil || u.RawQuery != "" || u.Fragment != ""
	if !isURL || extra {
		return nil, fmt.Errorf("%s: use an address like https://pawl.example.com, "+
			"without user and query", flag)
	}
	switch u.Scheme {
	case "https":
		return u, nil
	case "http":
		if loopback {
			return u, nil
		}
	}
	return nil, fmt.Errorf("%s: %s does not begin with https://", flag, u.Redacted())
}

// hub holds a GitHub server's URLs.
type hub struct{ web, rest, graphql string }

// hubOf returns a server's URLs: github.com and SUBDOMAIN.ghe.com have API hosts, Enterprise Servers use /api.
func hubOf(web string) (hub, error) {
	u, err := address("--github", web)
	if err != nil {
		return hub{}, err
	}
	if u.Path != "" {
		return hub{}, fmt.Errorf("--github: %s has a path; name the host only", u)
	}
	base := u.Scheme + "://"
	host := strings.ToLower(u.Hostname())
	if host == "github.com" || strings.HasSuffix(host, ".ghe.com") {
		base += "api." + host
		return hub{web: u.String(), rest: base, graphql: base + "/graphql"}, nil
	}
	base += u.Host + "/api"
	return hub{web: u.String(), rest: base + "/v3", graphql: base + "/graphql"}, nil
}

// Run shows the page until GitHub has created the App, then writes the files.
func (s Setup) Run(ctx context.Context, in io.Reader, out io.Writer) error {
	// Check before GitHub creates anything.
	if err := s.free(); err != nil {
		return err
	}
	late := fmt.Errorf("GitHub did not answer within %s; run pawl setup again", setupTime)
	ctx, cancel := context.WithTimeoutCause(ctx, setupTime, late)
	defer cancel()
	next, err := s.flow(ctx, in, out)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nThe App exists. Its key is in %s and the configuration in %s; "+
		"both are secret.\n\nNext:\n", s.key(), s.Config)
	for i, one := range next {
		fmt.Fprintf(out, "  %d. %s\n", i+1, one)
	}
	return nil
}

// flow creates the App with a local page, or with an address that the user pastes.
func (s Setup) flow(ctx context.Context, in io.Reader, out io.Writer) ([]step, error) {
	if s.Headless {
		return s.headless(ctx, in, out)
	}
	listener, err := net.Listen("tcp", s.Listen)
	if err != nil {
		return nil, fmt.Errorf("open a page on this machine: %w (--listen names another address)", err)
	}
	page := &setupPage{
		Setup:    s,
		listener: listener,
		secret:   rand.Text(),
		state:    rand.Text(),
		codes:    make(chan string, 1),
		finished: make(chan struct{}),
	}
	_, port, _ := net.SplitHostPort(page.listener.Addr().String())
	fmt.Fprintf(out, "Open this page in a browser on this machine:\n\n    %s\n\n"+
		"From another machine: ssh -L %s:127.0.0.1:%s THIS-MACHINE first, or use --headless",
		page.base()+"/"+page.secret, port, port)
	if s.public != nil {
		fmt.Fprintf(out, ".\nIf %s already leads to this port: %s/%s/remote",
			s.public, s.public, page.secret)
	}
	fmt.Fprintf(out, "\n\nIt creates the App at %s. Waiting …\n", s.hub.web)
	return page.serve(ctx)
}

// headless needs no browser on this machine. It prints a link that contains the form. The user pastes back the address
// at which the browser ends, and headless reads GitHub's code from it.
func (s Setup) headless(ctx context.Context, in io.Reader, out io.Writer) ([]step, error) {
	state := rand.Text()
	link, err := s.link(state)
	if err != nil {
		return nil, err
	}
	fmt.Fprintf(out, "Paste this link into the address bar of a browser that is signed in at %s:\n\n%s\n\n"+
		"GitHub then shows your Apps, and the address ends with code=…. "+
		"Paste that whole address here:\n",
		s.hub.web, link)
	lines := make(chan string)
	go readLines(ctx, in, lines) // may run until the process ends
	wrong := errors.New("the input ended before an address was pasted; run pawl setup again")
	for {
		select {
		case line, more := <-lines:
			if !more {
				return nil, wrong
			}
			steps, again, err := s.pasted(ctx, line, state)
			if !again {
				return steps, err
			}
			wrong = err
			fmt.Fprintf(out, "\nNot accepted: %v.\nPaste the address that GitHub shows after \"Create GitHub App\":\n", err)
		case <-ctx.Done():
			return nil, stopped(ctx)
		}
	}
}

// maxPasted limits the pasted input, in bytes. The address has about 200.
const maxPasted = 64 << 10

// readLines sends non-blank lines until the input ends.
func readLines(ctx context.Context, in io.Reader, lines chan<- string) {
	defer close(lines)
	read := bufio.NewScanner(io.LimitReader(in, maxPasted))
	for read.Scan() {
		line := strings.TrimSpace(read.Text())
		if line == "" {
			continue
		}
		select {
		case lines <- line:
		case <-ctx.Done():
			return
		}
	}
}

// pasted handles the pasted URL. again means that another paste may work.
func (s Setup) pasted(ctx context.Context, line, state string) (steps []step, again bool, err error) {
	code, err := s.codeIn(line, state)
	if err != nil {
		return nil, true, err
	}
	steps, err = s.finish(ctx, code)
	return steps, errors.Is(err, forge.ErrNotFound), err
}

// codeIn returns the code in GitHub's redirect URL.
func (s Setup) codeIn(line, state string) (string, error) {
	u, err := url.Parse(line)
	if err != nil {
		return "", errors.New("that is not an address")
	}
	q := u.Query()
	code := q.Get("code")
	switch {
	case u.Host == "":
		return "", fmt.Errorf("that is not the address; it begins with %s", s.appsPage())
	case code == "":
		return "", errors.New("that address has no code=…; it is incomplete, or from before the App was created")
	case !same(q.Get("state"), state):
		return "", errors.New("that address belongs to another link: its state=… is wrong or incomplete")
	case !forge.ValidCode(code):
		return "", errors.New("the code=… in that address is not one of GitHub's codes")
	}
	return code, nil
}

// link returns a page with the manifest's form as a data URL, in base64 for terminals and chats.
func (s Setup) link(state string) (string, error) {
	manifest, err := json.Marshal(s.manifest(s.appsPage()))
	if err != nil {
		return "", err
	}
	page := "<form method=post action='" + quoted.Replace(s.action(state)) +
		"'><input type=hidden name=manifest value='" + quoted.Replace(string(manifest)) + "'><button>Create the App"
	return "data:text/html;base64," + base64.StdEncoding.EncodeToString([]byte(page)), nil
}

// quoted escapes single-quoted HTML values. html/template would expand each quote to five characters.
var quoted = strings.NewReplacer("&", "&amp;", "'", "&#39;")

// stopped returns why the context ended.
func stopped(ctx context.Context) error {
	err := context.Cause(ctx)
	if errors.Is(err, context.Canceled) {
		return errors.New("interrupted; no App was created")
	}
	return err
}

// finish stores the new App and returns the next steps.
func (s Setup) finish(ctx context.Context, code string) ([]step, error) {
	app, err := forge.ConvertManifest(ctx, s.hub.rest, "pawl/"+s.version, code)
	if err != nil {
		return nil, fmt.Errorf("get the App's key from GitHub: %w "+
			"(the App itself may exist now: delete it at %s before you run pawl setup again)",
			err, s.appsPage())
	}
	err = s.check(app)
	if err != nil {
		return nil, fmt.Errorf("the App that GitHub made: %w; nothing was written", err)
	}
	unset, err := s.write(app)
	if err != nil {
		return nil, fmt.Errorf("%w (App %d, %q, exists at GitHub: "+
			"delete it at %s and run pawl setup again, "+
			"or make a new private key and webhook secret there and write the files yourself)",
			err, app.ID, app.Slug, s.appsPage())
	}
	return s.next(app, unset), nil
}

var slugPattern = regexp.MustCompile(`^[a-z0-9-]{1,100}$`)

// check refuses foreign Apps. An attacker could send the code of their own App, whose key they know.
func (s Setup) check(app forge.NewApp) error {
	switch {
	case s.Org != "" && !strings.EqualFold(app.Owner.Login, s.Org):
		return fmt.Errorf("it belongs to %q, not to %q", app.Owner.Login, s.Org)
	case !slugPattern.MatchString(app.Slug):
		return fmt.Errorf("its short name %q is not valid at GitHub", app.Slug)
	case app.WebhookSecret == "":
		return errors.New("it has no webhook secret, so anyone could send webhooks")
	}
	_, err := forge.New(forge.Config{
		WebURL:     s.hub.web,
		APIURL:     s.hub.rest,
		AppID:      app.ID,
		PrivateKey: []byte(app.PrivateKey),
	})
	return err
}

func (s Setup) appsPage() string {
	if s.Org != "" {
		return s.hub.web + "/organizations/" + s.Org + "/settings/apps"
	}
	return s.hub.web + "/settings/apps"
}

// placeholder is the App's webhook URL if the server polls: GitHub lists only deliveries that it tried to send. Nobody can
// own a name below example.com (RFC 2606).
const placeholder = "https://pawl.example.com"

func (s Setup) hook() string {
	if s.public == nil {
		return placeholder
	}
	return s.public.String()
}

type step struct{ Text, Link, Command string }

func (s step) String() string {
	more := s.Link + s.Command
	if more == "" {
		return s.Text
	}
	return s.Text + ": " + more
}

func (s Setup) next(app forge.NewApp, unset []string) (steps []step) {
	install := s.hub.web + "/apps/" + app.Slug
	if strings.HasPrefix(app.HTMLURL, s.hub.web+"/") { // an Enterprise Server uses another path
		install = strings.TrimRight(app.HTMLURL, "/")
	}
	steps = append(steps, step{
		Text: "Install the App on its repositories",
		Link: install + "/installations/new",
	})
	for _, name := range unset {
		steps = append(steps, step{
			Text:    "Set the variable that gives " + s.Config + " its key",
			Command: "export " + name + "=…",
		})
	}
	withConfig := " --config " + config.CommandLine([]string{s.Config})
	steps = append(steps, step{
		Text:    "Check everything",
		Command: "pawl doctor" + withConfig,
	})
	run := "Run the server; it needs no public address"
	if s.public != nil {
		run = fmt.Sprintf("Run the server behind %s, which must forward to 127.0.0.1:8080", s.public)
	}
	steps = append(steps, step{
		Text:    run,
		Command: "pawl serve" + withConfig,
	})
	if s.Pages != "" {
		steps = append(steps, step{
			Text: "Forward " + s.Pages + " to 127.0.0.1:8081, where the server answers the pages",
		})
	}
	return append(steps,
		step{
			Text: "Comment /pawl solve on an issue there",
			Link: s.hub.web + "/issues",
		},
		step{
			Text:    "Open the pages at " + s.pages() + " with a sign-in link from this command",
			Command: "pawl login" + withConfig,
		},
	)
}

// environment looks up this process's variables. For an unset variable it returns a placeholder, and appends the name to
// unset.
func environment(unset *[]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		if value, ok := os.LookupEnv(name); ok {
			return value, true
		}
		*unset = append(*unset, name)
		return "unset", true
	}
}
