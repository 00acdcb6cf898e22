package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/store"
)

func (d *doctor) database(ctx context.Context) {
	if d.cfg.Database.Driver == config.SQLite {
		if _, err := os.Stat(d.cfg.Database.Path); errors.Is(err, os.ErrNotExist) {
			d.writable("database", filepath.Dir(d.cfg.Database.Path), "not created yet; pawl serve creates it")
			return
		}
	}
	const hint = "correct database in the configuration, or let this user reach it"
	db, err := store.OpenReadOnly(ctx, dsn(d.cfg.Database), store.Options{})
	if err != nil {
		d.add("database", checkFail, err.Error(), hint)
		return
	}
	defer db.Close()
	stats, err := db.Stats(ctx)
	if err != nil {
		d.add("database", checkFail, err.Error(), hint)
		return
	}
	d.add("database", checkOK, fmt.Sprintf("%s answers; %d threads at work, %d waiting", d.cfg.Database.Driver, stats.Running, stats.Waiting), "")
}

// leastRoom is the free space, in bytes, below which a warning is given: a few
// checkouts of a large repository.
const leastRoom = 2 << 30

func (d *doctor) dataDir(context.Context) {
	d.writable("data_dir", d.cfg.DataDir, "")
	var fs unix.Statfs_t
	if unix.Statfs(d.cfg.DataDir, &fs) != nil {
		return // writable has said so
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < leastRoom {
		d.add("disk", checkWarn, fmt.Sprintf("%d MiB are free below %s", free>>20, d.cfg.DataDir), "make room: attempts need checkouts and transcripts")
	}
}

// writable checks that a folder, or the nearest one above it that exists, can be
// written to.
func (d *doctor) writable(check, dir, note string) {
	there := dir
	for {
		if _, err := os.Stat(there); err == nil || there == filepath.Dir(there) {
			break
		}
		there = filepath.Dir(there)
	}
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		d.add(check, checkFail, fmt.Sprintf("%s cannot be written to: %v", there, err), "let the user that runs Pawl own it")
		return
	}
	d.add(check, checkOK, cmp.Or(note, dir+" can be written to"), "")
}

func (d *doctor) git(ctx context.Context) {
	v, err := git.Version(ctx)
	if err != nil {
		d.add("git", checkFail, err.Error(), "install git, or start Pawl with a PATH that has it")
		return
	}
	var major, minor int
	if _, err := fmt.Sscanf(v, "git version %d.%d", &major, &minor); err != nil {
		d.add("git", checkWarn, fmt.Sprintf("its version is unknown: it printed %.100q", v), "Pawl needs git 2.38 or newer")
		return
	}
	if major < 2 || major == 2 && minor < leastGit {
		d.add("git", checkFail, fmt.Sprintf("%s is too old", v), "install git 2.38 or newer")
		return
	}
	d.add("git", checkOK, v, "")
}

// leastGit is the minor version of git 2 that internal/git asks for.
const leastGit = 38

func (d *doctor) sandbox(ctx context.Context) {
	if d.cfg.Sandbox.Mode == config.SandboxNone {
		d.add("sandbox", checkWarn, "sandbox.mode is none: agents can read and write whatever this user can", "install bubblewrap and set sandbox.mode to auto")
	} else if _, err := sandbox.New(ctx, sandbox.Auto); err != nil {
		d.add("sandbox", checkFail, err.Error(), "install bubblewrap, and let ordinary users make namespaces; docs/security.md says what none gives up")
	} else {
		d.add("sandbox", checkOK, "bubblewrap works", "")
	}
	for _, path := range d.cfg.Sandbox.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			d.add("sandbox", checkFail, fmt.Sprintf("sandbox.read_only: %v", err), "no agent starts while it is missing: correct the path or remove it")
		}
	}
}

// appPermissions is what the App asks for, as in app.yml.
func appPermissions() map[string]string {
	return map[string]string{"checks": "write", "contents": "write", "issues": "write", "pull_requests": "write", "metadata": "read"}
}

// appEvents is what the App listens to, as in app.yml.
func appEvents() []string {
	return []string{"issues", "issue_comment", "pull_request", "pull_request_review", "pull_request_review_comment", "check_run", "push", "delete", "repository"}
}

func (d *doctor) github(ctx context.Context) {
	const keyHint = "let private_key_file name the App's key; its settings page makes a new one, and pawl setup a new App"
	key, err := d.cfg.GitHub.App.Key()
	if err != nil {
		d.add("github", checkFail, err.Error(), keyHint)
		return
	}
	client, err := forge.New(forge.Config{
		WebURL: d.cfg.GitHub.WebURL, APIURL: d.cfg.GitHub.V3APIURL, AppID: d.cfg.GitHub.App.IntegrationID, PrivateKey: []byte(key.Reveal()),
		UserAgent: "pawl/" + buildInfo().Version, Now: time.Now, Log: d.log,
	})
	if err != nil {
		d.add("github", checkFail, err.Error(), keyHint)
		return
	}
	app, err := client.App(ctx)
	if err != nil {
		d.add("github", checkFail, err.Error(), "look at integration_id, the private key, v3_api_url and this machine's clock")
		return
	}
	d.add("github", checkOK, fmt.Sprintf("signs in as %s (App %d)", app.BotLogin, app.ID), "")
	d.permissions(app)
	if app.Permissions["workflows"] != "" {
		d.add("permissions", checkWarn, "the App has the permission workflows, so an agent could change what runs with the repository's secrets", "take it away in the App's settings")
	}
}

func (d *doctor) permissions(app forge.App) {
	var missing []string
	for _, name := range slices.Sorted(maps.Keys(appPermissions())) {
		want := appPermissions()[name]
		if has := app.Permissions[name]; has != want && has != "write" && has != "admin" {
			missing = append(missing, name+": "+want)
		}
	}
	if len(missing) > 0 {
		d.add("permissions", checkFail, "the App lacks "+strings.Join(missing, ", "), "grant them in the App's settings; every owner who installed it must accept the change")
	} else {
		d.add("permissions", checkOK, "the App has what it needs", "")
	}
	missing = nil
	for _, e := range appEvents() {
		if !slices.Contains(app.Events, e) {
			missing = append(missing, e)
		}
	}
	if len(missing) > 0 {
		d.add("events", checkFail, "the App does not subscribe to "+strings.Join(missing, ", "), "tick them in the App's settings under Permissions & events")
	} else {
		d.add("events", checkOK, "the App subscribes to what it listens to", "")
	}
}

// bounds warns of configurations that keep less in than a person may think.
func (d *doctor) bounds(context.Context) {
	if d.cfg.Policy.Paused {
		d.add("policy", checkWarn, "policy.paused is true: nothing starts", "set it to false to let Pawl work")
	}
	b := d.cfg.Policy.Budget
	if len(d.cfg.Providers) > 0 && b.TokensPerAttempt == 0 && b.USDPerAttempt == 0 {
		d.add("budget", checkWarn, "no attempt has a budget of tokens or money", "set policy.budget.tokens_per_attempt")
	}
	for _, p := range d.cfg.Providers {
		if len(p.Prices) == 0 && (b.USDPerAttempt > 0 || b.USDPerThreadPerDay > 0) {
			d.add("budget", checkFail, fmt.Sprintf("provider %s has no prices, and a budget in dollars needs them: usd_per_attempt refuses every call there, usd_per_thread_per_day does not bind", p.Name), "add prices, or use a budget of tokens")
		}
	}
}
