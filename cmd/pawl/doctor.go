package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/forge"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/render"
	"github.com/pawlbot/pawl/internal/sandbox"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
	"github.com/pawlbot/pawl/internal/wait"
)

const (
	checkOK   = "ok"
	checkWarn = "warning"
	checkFail = "failed"
)

// doctorTime bounds each check and each CLI's --version, which on a busy machine was seen to take more than a
// minute.
const doctorTime = 2 * time.Minute

type finding struct {
	Check string `json:"check"`
	State string `json:"state"`
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"` // what to do; empty where there is nothing to do
}

// Error is a finding of what does not work.
func (f finding) Error() string { return f.Check + ": " + f.Text + " (" + f.Hint + ")" }

// failures are those findings.
func failures(all []finding) []finding {
	return slices.DeleteFunc(slices.Clone(all), func(f finding) bool { return f.State != checkFail })
}

func doctorCommand() *cobra.Command {
	var file, repo string
	cmd := &cobra.Command{
		Use: "doctor --config FILE [--repo OWNER/NAME]", Short: "Check that a server could work: config, database, GitHub, sandbox, git, agents", Args: cobra.NoArgs,
		Long: "Check everything that a server needs, one line a check, with a hint where something is wrong.\n" +
			"Warnings do not fail the command. Providers are asked for their models, which costs nothing; agents are started in\n" +
			"the sandbox, to tell their version; nothing is written at GitHub. With --repo that repository is tried, too: its\n" +
			".github/pawl.yml is read from the default branch, its setup and its verify commands run there as before a first\n" +
			"attempt, in a folder of their own that is removed afterwards.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("repo") {
				if _, _, err := repository(repo); err != nil {
					return usageError{errors.New("--repo takes OWNER/NAME, such as --repo octo-org/widgets")}
				}
			}
			all := examine(cmd.Context(), file, repo)
			err := printReport(cmd, map[string]any{"checks": all}, func(w io.Writer) {
				for _, f := range all {
					fmt.Fprintf(w, "%-8s %-14s %s\n", f.State, f.Check, f.Text)
					if f.Hint != "" {
						fmt.Fprintf(w, "%-8s %-14s → %s\n", "", "", f.Hint)
					}
				}
			})
			if err != nil {
				return err
			}
			if failed := len(failures(all)); failed > 0 {
				return fmt.Errorf("%d of %d checks failed; their lines say what to do", failed, len(all))
			}
			return nil
		},
	}
	requiredFlag(cmd, &file, "config", "the server's configuration file")
	cmd.Flags().StringVar(&repo, "repo", "", "try this repository, too")
	jsonFlag(cmd)
	return cmd
}

// examine does all checks. Without a readable configuration there is only one.
func examine(ctx context.Context, file, repo string) []finding {
	cfg, err := config.Load(file, os.LookupEnv)
	if err != nil {
		problems, ok := errors.AsType[config.Problems](err)
		if !ok {
			return []finding{{Check: "configuration", State: checkFail, Text: err.Error(), Hint: "pawl setup writes a new one, config/example.yml shows every key"}}
		}
		var found []finding
		for _, p := range problems {
			found = append(found, finding{Check: "configuration", State: checkFail, Text: p.String(), Hint: "correct it; docs/configuration.md has every key"})
		}
		return found
	}
	d := newDoctor(cfg)
	d.add("configuration", checkOK, file+" is complete", "")
	d.inForce()
	d.bounded(ctx, d.database)
	d.machine(ctx)
	d.agents(ctx)
	d.outside(ctx)
	if repo != "" && d.client != nil {
		d.repository(ctx, d.client, repo)
	}
	return d.found
}

type doctor struct {
	cfg       config.Server
	transport http.RoundTripper
	box       *sandbox.Sandbox // nil where it does not work
	client    *forge.Client    // nil where the App cannot sign in
	found     []finding
}

func newDoctor(cfg config.Server) *doctor {
	server.ShowInstalled(&cfg)
	return &doctor{cfg: cfg, transport: http.DefaultTransport}
}

// machine are the checks of what an attempt begins with; a server does not start where one fails.
func (d *doctor) machine(ctx context.Context) {
	d.bounded(ctx, d.git)
	d.dataDir()
	d.bounded(ctx, d.sandbox)
}

// outside are the checks of others, whose state may pass by itself, and of what the configuration leaves open.
func (d *doctor) outside(ctx context.Context) {
	d.bounded(ctx, d.github)
	d.bounded(ctx, d.signing)
	d.bounded(ctx, d.providers)
	d.bounds()
}

func (d *doctor) bounded(ctx context.Context, check func(context.Context)) {
	ctx, cancel := context.WithTimeout(ctx, doctorTime)
	defer cancel()
	check(ctx)
}

// add keeps a finding, as one line: some errors have several.
func (d *doctor) add(check, state, text, hint string) {
	d.found = append(d.found, finding{Check: check, State: state, Text: strings.Join(strings.Fields(text), " "), Hint: hint})
}

// failed adds an error as a finding. It reports whether there is one.
func (d *doctor) failed(check string, err error, hint string) bool {
	if err != nil {
		d.add(check, checkFail, err.Error(), hint)
	}
	return err != nil
}

const (
	// agentsTime is how long a start waits for the CLIs to tell their versions; who takes longer is heard later.
	agentsTime = 5 * time.Second
	// outsideAfter is when a server that has begun to work looks at what others answer.
	outsideAfter = 30 * time.Second
)

// startChecks refuses to start where no attempt could: what fails there does not pass by itself. It adds to the
// configuration what newDoctor does. A backend that does not work is no reason while another one does. What it
// returns makes the checks that need no answer before the server works.
func startChecks(ctx context.Context, cfg *config.Server, log zerolog.Logger) (later func(context.Context), err error) {
	d := newDoctor(*cfg)
	*cfg = d.cfg
	d.machine(ctx)
	var refused []error
	for _, f := range failures(d.found) {
		refused = append(refused, f)
	}
	if len(refused) > 0 {
		return nil, errors.Join(refused...)
	}
	tell(d.found, log)
	agents := make(chan []finding, 1) // what the CLIs say, once
	go func() {
		asked := &doctor{cfg: d.cfg, box: d.box}
		asked.agents(ctx)
		agents <- asked.found
	}()
	select {
	case found := <-agents:
		agents <- nil
		broken := map[string]string{}
		for _, f := range failures(found) {
			broken[f.Check] = f.Error()
		}
		if len(broken) == len(d.cfg.Backends) {
			return nil, fmt.Errorf("no backend can work: %s", strings.Join(slices.Sorted(maps.Values(broken)), "; "))
		}
		tell(found, log)
	case <-time.After(agentsTime):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	return func(ctx context.Context) {
		if wait.For(ctx, outsideAfter) != nil {
			return
		}
		beside := newDoctor(d.cfg)
		if beside.outside(ctx); ctx.Err() != nil {
			return
		}
		tell(beside.found, log)
		select {
		case found := <-agents:
			tell(found, log)
		case <-ctx.Done():
		}
	}, nil
}

// tell logs what is not as it should be.
func tell(all []finding, log zerolog.Logger) {
	for _, f := range all {
		if f.State != checkOK {
			log.Warn().Str("check", f.Check).Str("state", f.State).Str("hint", f.Hint).Msg(f.Text)
		}
	}
}

func (d *doctor) database(ctx context.Context) {
	if d.cfg.Database.Driver == config.SQLite {
		if _, err := os.Stat(d.cfg.Database.Path); errors.Is(err, os.ErrNotExist) {
			d.writable("database", filepath.Dir(d.cfg.Database.Path), "not created yet; pawl serve creates it")
			return
		}
	}
	const hint = "correct database in the configuration, or let this user reach it"
	db, err := store.Open(ctx, d.cfg.Database.DSN(), store.Options{Access: store.Reading})
	if d.failed("database", err, hint) {
		return
	}
	defer db.Close()
	stats, err := db.Stats(ctx)
	if d.failed("database", err, hint) {
		return
	}
	d.add("database", checkOK, fmt.Sprintf("%s answers; %d threads at work, %d waiting", d.cfg.Database.Driver, stats.Running, stats.Waiting), "")
}

// inForce tells by which configuration the servers go that run here.
func (d *doctor) inForce() {
	for _, s := range server.Running(d.cfg.DataDir) {
		said, do := s.Text()
		d.add("server", render.When(do == "", checkOK)+render.When(do != "", checkWarn), said, do)
	}
}

// leastRoom is the free space in bytes that needs no warning: a few checkouts of a large repository.
const leastRoom = 2 << 30

func (d *doctor) dataDir() {
	d.writable("data_dir", d.cfg.DataDir, "")
	var fs unix.Statfs_t
	if err := unix.Statfs(nearest(d.cfg.DataDir), &fs); d.failed("disk", err, "see that the disk below data_dir is mounted") {
		return
	}
	free := fmt.Sprintf("%.1f GiB are free below %s", float64(fs.Bavail*uint64(fs.Bsize))/(1<<30), d.cfg.DataDir)
	if fs.Bavail*uint64(fs.Bsize) < leastRoom {
		d.add("disk", checkWarn, free, "make room: attempts need checkouts and transcripts")
	} else {
		d.add("disk", checkOK, free, "")
	}
}

// nearest is a folder, or the nearest one above it that there is.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// writable checks that a folder, or the nearest one above it, can be written to.
func (d *doctor) writable(check, dir, note string) {
	there := nearest(dir)
	if err := unix.Access(there, unix.W_OK|unix.X_OK); err != nil {
		d.add(check, checkFail, fmt.Sprintf("%s cannot be written to: %v", there, err), "let the user that runs Pawl own it")
		return
	}
	d.add(check, checkOK, cmp.Or(note, dir+" can be written to"), "")
}

func (d *doctor) git(ctx context.Context) {
	v, err := git.Version(ctx)
	if d.failed("git", err, "install git, or start Pawl with a PATH that has it") {
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
	var err error
	if d.box, err = server.OpenSandbox(ctx, d.cfg.Sandbox, ""); err != nil {
		d.add("sandbox", checkFail, err.Error(), "install bubblewrap, and let ordinary users make namespaces; docs/security.md says what none gives up")
	} else if d.cfg.Sandbox.Mode == config.SandboxNone {
		d.add("sandbox", checkWarn, "sandbox.mode is none: agents can read and write whatever this user can", "install bubblewrap and set sandbox.mode to auto")
	} else if !d.cfg.Sandbox.Walled() {
		d.add("sandbox", checkWarn, "bubblewrap works; sandbox.network is open: agents reach whatever this machine reaches", "set it to walled, and list in network what programs need")
	} else {
		d.add("sandbox", checkOK, "bubblewrap works", "")
	}
	if d.box != nil {
		how, groups := d.box.Limited()
		state, hint := checkOK, ""
		if !groups {
			state, hint = checkWarn, "give Pawl a control group of version 2 of its own: Delegate=yes in its unit of systemd"
		}
		d.add("limits", state, how, hint)
	}
	for _, path := range d.cfg.Sandbox.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			d.add("sandbox", checkFail, fmt.Sprintf("sandbox.read_only: %v", err), "no agent starts while it is missing: correct the path or remove it")
		}
	}
}

// bounds warns of configurations that keep less in than a person may think.
func (d *doctor) bounds() {
	if d.cfg.Policy.Paused {
		d.add("policy", checkWarn, "policy.paused is true: nothing starts", "set it to false to let Pawl work; what stopped for it goes on")
	}
	b := d.cfg.Policy.Budget
	if len(d.cfg.Providers) > 0 && b.TokensPerAttempt == 0 && b.USDPerAttempt == 0 {
		d.add("budget", checkWarn, "no attempt has a budget of tokens or money", "set policy.budget.tokens_per_attempt")
	}
	for _, p := range d.cfg.Providers {
		switch {
		case len(p.PriceList()) > 0:
		case b.USDPerAttempt > 0 || b.USDPerThreadPerDay > 0:
			d.add("budget", checkFail, fmt.Sprintf("provider %s has no prices, and a budget in dollars needs them: usd_per_attempt refuses every call there, usd_per_thread_per_day does not bind", p.Name), "add prices, or use a budget of tokens")
		case b.USDPerRepositoryPerDay > 0 || b.USDPerInstallationPerDay > 0 || b.USDPerServerPerDay > 0:
			d.add("budget", checkWarn, fmt.Sprintf("provider %s has no prices: the dollars of a day (usd_per_repository_per_day and those above it) count only what its agents tell", p.Name), "add prices, or set tokens_per_repository_per_day")
		}
	}
}
