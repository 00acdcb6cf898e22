package main

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
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/setup"
	"github.com/pawlbot/pawl/policy"
)

func (d *doctor) github(ctx context.Context) {
	const keyHint = "let private_key_file name the App's key; its settings page makes a new one, and pawl setup a new App"
	key, err := d.cfg.GitHub.App.Key()
	if d.failed("github", err, keyHint) {
		return
	}
	clock := &datedTransport{RoundTripper: d.transport}
	reach := server.GitHub(d.cfg.GitHub, key, buildInfo())
	reach.Transport, reach.Now, reach.Log = clock, time.Now, zerolog.Nop()
	client, err := forge.New(reach)
	if d.failed("github", err, keyHint) {
		return
	}
	app, err := client.Apps.Get(ctx)
	d.clock(clock)
	hint := "look at integration_id, the private key, v3_api_url and this machine's clock"
	if errors.Is(err, forge.ErrUnavailable) {
		hint = "look at v3_api_url, and whether this machine reaches it: its names, proxies and firewall"
	}
	if d.failed("github", err, hint) {
		return
	}
	d.client = client
	d.add("github", checkOK, fmt.Sprintf("signs in as %s (App %d)", app.BotLogin, app.ID), "")
	d.permissions(app)
	if app.Permissions["workflows"] != "" {
		d.add("permissions", checkWarn, "the App has the permission workflows, so an agent could change what runs with the repository's secrets", "take it away in the App's settings")
	}
	if app.Installations == 0 {
		d.add("installed", checkWarn, "the App is installed nowhere, so nobody can ask it for work", fmt.Sprintf("install it: %s/apps/%s/installations/new", d.cfg.GitHub.WebURL, app.Slug))
	} else {
		d.add("installed", checkOK, "the App is installed on "+policy.Plural(app.Installations, "account"), "")
	}
	d.hook(ctx)
}

// clock compares this machine's clock with GitHub's, which refuses what is dated a minute ahead.
func (d *doctor) clock(t *datedTransport) {
	switch skew := t.ahead.Load(); {
	case skew == nil: // nothing came from GitHub, which another line says
	case skew.Abs() >= server.MaxSkew:
		d.add("clock", checkFail, fmt.Sprintf("GitHub's clock differs from this machine's by %s", skew.Round(time.Second)), "set the clock, such as by systemd-timesyncd or chrony: GitHub refuses what is dated a minute ahead")
	default:
		d.add("clock", checkOK, "agrees with GitHub's to within a minute", "")
	}
}

// datedTransport remembers how far the clock of who answered last was ahead of this one.
type datedTransport struct {
	http.RoundTripper
	ahead atomic.Pointer[time.Duration] // nil before an answer
}

func (t *datedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if date, err := http.ParseTime(resp.Header.Get("Date")); err == nil {
		ahead := time.Until(date)
		t.ahead.Store(&ahead)
	}
	return resp, nil
}

// hookPath is where GitHub's deliveries are taken, below the server's address.
const hookPath = "/api/github/hook"

// judgedDeliveries is how many of the last deliveries are looked at.
const judgedDeliveries = 20

// hook looks where GitHub sends the App's deliveries, and how the last of them were answered.
func (d *doctor) hook(ctx context.Context) {
	const settings = "correct it in the App's settings, under Webhook; app.yml has the form"
	h, err := d.client.Apps.Hook(ctx)
	if d.failed("hook", err, "look whether the App has a webhook that is active") {
		return
	}
	if d.cfg.GitHub.Receive == config.ReceivePoll {
		d.add("hook", checkOK, "the server asks GitHub for its deliveries; what GitHub sends to "+h.URL+" need not arrive", "")
		return
	}
	u, err := url.Parse(h.URL)
	switch {
	case err != nil || h.URL == "" || !strings.HasSuffix(u.Path, hookPath):
		d.add("hook", checkFail, fmt.Sprintf("GitHub sends deliveries to %q, which does not end with %s", h.URL, hookPath), settings+"; or set github.receive to poll where there is no address")
		return
	case h.ContentType != "json":
		d.add("hook", checkFail, fmt.Sprintf("deliveries are sent as %q, and Pawl reads json", h.ContentType), settings)
		return
	}
	sent, _, err := d.client.Apps.Deliveries(ctx, "")
	if d.failed("hook", err, "try again; GitHub did not list the App's deliveries") {
		return
	}
	sent = sent[:min(len(sent), judgedDeliveries)]
	refused := slices.DeleteFunc(slices.Clone(sent), func(one forge.Delivery) bool { return one.StatusCode/100 == 2 })
	switch {
	case len(refused) == 0 && len(sent) == 0:
		d.add("hook", checkOK, "GitHub sends deliveries to "+h.URL+", and has sent none in three days", "")
	case len(refused) == 0:
		d.add("hook", checkOK, fmt.Sprintf("the last %s to %s arrived", deliveries(len(sent)), h.URL), "")
	default:
		d.add("hook", checkWarn, fmt.Sprintf("%d of the last %s to %s did not arrive; the newest of them was answered with %s", len(refused), deliveries(len(sent)), h.URL, status(refused[0].StatusCode)),
			"look whether that address leads to this server with TLS, and whether the secret there is webhook_secret; Pawl fetches them itself, minutes later")
	}
}

func deliveries(n int) string {
	if n == 1 {
		return "delivery"
	}
	return fmt.Sprintf("%d deliveries", n)
}

func status(code int) string {
	if code == 0 {
		return "nothing at all"
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", code, http.StatusText(code)))
}

func (d *doctor) permissions(app forge.App) {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(setup.AppPermissions())) {
		want := setup.AppPermissions()[name]
		if has := app.Permissions[name]; has != want && has != "write" && has != "admin" {
			missing = append(missing, name+": "+want)
		}
	}
	const logs = "actions: read"
	if slices.Contains(missing, logs) { // the rest works without it
		missing = slices.DeleteFunc(missing, func(name string) bool { return name == logs })
		d.add("permissions", checkWarn, "the App lacks "+logs+", so no agent is told the logs of failing jobs", "grant it in the App's settings; every owner who installed it must accept the change")
	}
	d.without("permissions", missing, "the App has what it needs", "the App lacks ", "grant them in the App's settings; every owner who installed it must accept the change")
	unheard := slices.DeleteFunc(setup.AppEvents(), func(e string) bool { return slices.Contains(app.Events, e) })
	d.without("events", unheard, "the App subscribes to what it listens to", "the App does not subscribe to ", "tick them in the App's settings under Permissions & events")
}

func (d *doctor) without(check string, missing []string, well, lacks, hint string) {
	if len(missing) > 0 {
		d.add(check, checkFail, lacks+strings.Join(missing, ", "), hint)
	} else {
		d.add(check, checkOK, well, "")
	}
}

// signing looks whether git could sign with the key that the configuration names.
func (d *doctor) signing(ctx context.Context) {
	file := d.cfg.GitHub.App.SigningKeyFile
	if file == "" {
		return
	}
	const hint = "let github.app.signing_key_file name an SSH key without a passphrase (ssh-keygen -t ed25519 -N '' -f FILE), which this user alone may read; ssh-keygen is in openssh-client"
	info, err := os.Stat(file)
	if d.failed("signing", err, hint) {
		return
	}
	if info.Mode().Perm()&0o077 != 0 {
		d.add("signing", checkFail, fmt.Sprintf("%s may be read by others (%v), so ssh-keygen does not use it", file, info.Mode().Perm()), "chmod 600 "+file)
		return
	}
	// The passphrase is given, so that it asks for none.
	out, err := exec.CommandContext(ctx, "ssh-keygen", "-y", "-P", "", "-f", file).CombinedOutput()
	kind, _, _ := strings.Cut(string(out), " ")
	if err != nil {
		err = fmt.Errorf("%s is no key to sign with: %w: %s", file, err, render.Line(string(out), 200))
	}
	if !d.failed("signing", err, hint) {
		d.add("signing", checkOK, "commits of attempts are signed by "+file+" ("+kind+")", "GitHub shows them as verified where an account with the committer's address has it as a signing key")
	}
}
