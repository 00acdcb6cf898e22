package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/cluster"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/policy"
)

// signedIn is the result of signing in as the App.
type signedIn struct {
	client *forge.Client
	app    forge.App
	err    error
	hint   string // for err
}

func (e *exam) hasApp() bool { return e.app != nil && e.app.err == nil }

// signIn asks GitHub for the App once.
func (e *exam) signIn(ctx context.Context) *signedIn {
	if e.app != nil {
		return e.app
	}
	in := &signedIn{hint: "set private_key_file to the App's key; the App's settings page creates a new key, and pawl setup a new App"}
	e.app = in
	var key config.Secret
	if key, in.err = e.cfg.GitHub.App.Key(); in.err != nil {
		return in
	}
	reach := server.GitHub(e.cfg.GitHub, key, e.build)
	reach.Transport, reach.Now, reach.Log = e.transport, time.Now, zerolog.Nop()
	if in.client, in.err = forge.New(reach); in.err != nil {
		return in
	}
	in.app, in.err = in.client.Apps.Get(ctx)
	in.hint = fmt.Sprintf(
		"github.app.integration_id is %d: it must be the App ID on the App's settings page (%s/settings/apps), and the private key must belong to that App; also check v3_api_url and this machine's clock",
		e.cfg.GitHub.App.IntegrationID, e.cfg.GitHub.WebURL,
	)
	if errors.Is(in.err, forge.ErrUnavailable) {
		in.hint = "check v3_api_url, and whether this machine reaches it: DNS, proxies and firewall"
	}
	return in
}

func (e *exam) clock(ctx context.Context) []Finding {
	in := e.signIn(ctx)
	if in.client == nil {
		return clocks(e.aheadOfDatabase, 0, false)
	}
	ahead, known := in.client.Clock.Offset()
	return clocks(e.aheadOfDatabase, ahead, known)
}

// clocks compares this machine's clock with the database's and, if known, GitHub's.
func clocks(database, github time.Duration, known bool) []Finding {
	err := errors.Join(cluster.CompareClocks("the database's", database), cluster.CompareClocks("GitHub's", github))
	if err != nil {
		return failed(err.Error(), "a server with this clock starts no work")
	}
	if !known {
		return nil // another finding reports GitHub's silence
	}
	return ok("agrees with GitHub's to within a minute")
}

func (e *exam) github(ctx context.Context) []Finding {
	in := e.signIn(ctx)
	if in.err != nil {
		return failed(in.err.Error(), in.hint)
	}
	return ok(fmt.Sprintf("signs in as %s (App %d)", in.app.BotLogin, in.app.ID))
}

const logsPermission = "actions: read"

func (e *exam) permissions(context.Context) (all []Finding) {
	const hint = "grant it in the App's settings; every owner who installed it must accept the change"
	missing := missingPermissions(e.app.app.Permissions)
	if slices.Contains(missing, logsPermission) {
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == logsPermission })
		all = warning("the App lacks "+logsPermission+", so no agent gets the logs of failing jobs", hint)
	}
	if len(missing) == 0 {
		return append(all, ok("the App has all permissions that it needs")...)
	}
	return append(all, failed(
		"the App lacks "+strings.Join(missing, ", "),
		"grant them in the App's settings; every owner who installed it must accept the change",
	)...)
}

func missingPermissions(granted map[string]string) (missing []string) {
	wanted := setup.AppPermissions()
	for _, name := range slices.Sorted(maps.Keys(wanted)) {
		switch granted[name] {
		case wanted[name], "write", "admin":
		default:
			missing = append(missing, name+": "+wanted[name])
		}
	}
	return missing
}

func (e *exam) events(context.Context) []Finding {
	subscribed := func(event string) bool { return slices.Contains(e.app.app.Events, event) }
	missing := slices.DeleteFunc(setup.AppEvents(), subscribed)
	if len(missing) == 0 {
		return ok("the App subscribes to all events that Pawl handles")
	}
	return failed(
		"the App does not subscribe to "+strings.Join(missing, ", "),
		"tick them in the App's settings under Permissions & events",
	)
}

func (e *exam) workflows(context.Context) []Finding {
	if e.app.app.Permissions["workflows"] == "" {
		return nil
	}
	return warning(
		"the App has the permission workflows, so an agent could change workflows that run with the repository's secrets",
		"remove it in the App's settings",
	)
}

func (e *exam) installed(context.Context) []Finding {
	app := e.app.app
	if app.Installations == 0 {
		return warning(
			"the App is installed nowhere, so nobody can ask it for work",
			fmt.Sprintf("install it: %s/apps/%s/installations/new", e.cfg.GitHub.WebURL, app.Slug),
		)
	}
	return ok("the App is installed on " + policy.Plural(app.Installations, "account"))
}

// HookPath is the webhook's path below the server's URL.
const HookPath = "/api/github/hook"

const judgedDeliveries = 20

// hook checks the App's webhook URL and recent answers.
func (e *exam) hook(ctx context.Context) []Finding {
	h, err := e.app.client.Apps.Hook(ctx)
	if err != nil {
		return failed(err.Error(), "check that the App has an active webhook")
	}
	if e.cfg.GitHub.Receive == config.ReceivePoll {
		return ok("the server polls GitHub for deliveries; those that GitHub sends to " + h.URL + " need not arrive")
	}
	const settings = "correct it in the App's settings, under Webhook; app.yml shows an example"
	if !takesDeliveries(h.URL) {
		return failed(
			fmt.Sprintf("GitHub sends deliveries to %q, which does not end with %s", h.URL, HookPath),
			settings+"; or set github.receive to poll if the server has no public address",
		)
	}
	if h.ContentType != "json" {
		return failed(fmt.Sprintf("deliveries are sent as %q, but Pawl reads only json", h.ContentType), settings)
	}
	sent, _, err := e.app.client.Apps.Deliveries(ctx, "")
	if err != nil {
		return failed(err.Error(), "try again; GitHub did not list the App's deliveries")
	}
	return arrived(h.URL, sent[:min(len(sent), judgedDeliveries)])
}

// takesDeliveries reports whether a URL may be a server's webhook URL.
func takesDeliveries(address string) bool {
	u, err := url.Parse(address)
	return err == nil && strings.HasSuffix(u.Path, HookPath)
}

// arrived checks how the webhook answered recent deliveries.
func arrived(address string, sent []forge.Delivery) []Finding {
	if len(sent) == 0 {
		return ok("GitHub sends deliveries to " + address + ", and has sent none in three days")
	}
	good := func(one forge.Delivery) bool { return one.StatusCode/100 == 2 }
	refused := slices.DeleteFunc(slices.Clone(sent), good)
	last := "delivery"
	if len(sent) > 1 {
		last = fmt.Sprintf("%d deliveries", len(sent))
	}
	if len(refused) == 0 {
		return ok(fmt.Sprintf("the last %s to %s arrived", last, address))
	}
	return warning(
		fmt.Sprintf("%d of the last %s to %s did not arrive; the newest of these got %s", len(refused), last, address, status(refused[0].StatusCode)),
		"check that this address leads to this server with TLS, and that the webhook's secret is webhook_secret; Pawl itself fetches missed deliveries, minutes later",
	)
}

func status(code int) string {
	if code == 0 {
		return "no answer"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

func (e *exam) signs() bool { return e.cfg.GitHub.App.SigningKeyFile != "" }

// signing checks whether git can sign with the configured key.
func (e *exam) signing(ctx context.Context) []Finding {
	const hint = "set github.app.signing_key_file to an SSH key without a passphrase (ssh-keygen -t ed25519 -N '' -f FILE) that only this user can read; ssh-keygen is in openssh-client"
	file := e.cfg.GitHub.App.SigningKeyFile
	info, err := os.Stat(file)
	if err != nil {
		return failed(err.Error(), hint)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return failed(
			fmt.Sprintf("others can read %s (%v), so ssh-keygen refuses it", file, mode),
			"chmod 600 "+file,
		)
	}
	// The empty passphrase prevents a prompt.
	cmd := exec.CommandContext(ctx, "ssh-keygen", "-y", "-P", "", "-f", file)
	cmd.Env = []string{} // without bubblewrap, agents can read its variables
	out, err := cmd.CombinedOutput()
	if err != nil {
		return failed(fmt.Sprintf("%s is not a usable signing key: %v: %s", file, err, render.Line(string(out), 200)), hint)
	}
	kind, _, _ := strings.Cut(string(out), " ")
	return []Finding{{
		State: OK,
		Text:  "commits of attempts are signed by " + file + " (" + kind + ")",
		Hint:  "GitHub shows them as verified if an account with the committer's address has this signing key",
	}}
}
