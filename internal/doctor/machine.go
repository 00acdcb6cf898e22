package doctor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/pawlbot/pawl/config"
	"github.com/pawlbot/pawl/internal/git"
	"github.com/pawlbot/pawl/internal/server"
	"github.com/pawlbot/pawl/internal/store"
)

func (e *exam) servers(context.Context) (all []Finding) {
	for _, s := range server.Running(e.cfg.DataDir) {
		problem, do := s.Text()
		if do == "" {
			all = append(all, ok(problem)...)
		} else {
			all = append(all, warning(problem, do)...)
		}
	}
	return all
}

func (e *exam) database(ctx context.Context) []Finding {
	d := e.cfg.Database
	if d.Driver == config.SQLite {
		if _, err := os.Stat(d.Path); errors.Is(err, os.ErrNotExist) {
			return writable(filepath.Dir(d.Path), "not created yet; pawl serve creates it")
		}
	}
	const hint = "correct database in the configuration, or give this user access to it"
	db, err := store.Open(ctx, d.DSN(), store.Options{Access: store.Reading})
	if err != nil {
		return failed(err.Error(), hint)
	}
	defer db.Close()
	e.aheadOfDatabase = -db.Skew()
	stats, err := db.Stats(ctx)
	if err != nil {
		return failed(err.Error(), hint)
	}
	return ok(fmt.Sprintf("%s answers; %d threads at work, %d waiting", d.Driver, stats.Running, stats.Waiting))
}

func (e *exam) dataDir(context.Context) []Finding { return writable(e.cfg.DataDir, "") }

// leastRoom is the free space, in bytes, below which doctor warns: a few checkouts of a large repository.
const leastRoom = 2 << 30

func (e *exam) disk(context.Context) []Finding {
	var fs unix.Statfs_t
	if err := unix.Statfs(nearest(e.cfg.DataDir), &fs); err != nil {
		return failed(err.Error(), "check that the disk of data_dir is mounted")
	}
	free := fs.Bavail * uint64(fs.Bsize)
	text := fmt.Sprintf("%.1f GiB are free below %s", float64(free)/(1<<30), e.cfg.DataDir)
	found := ok(text)
	if free < leastRoom {
		found = warning(text, "make room: attempts need checkouts and transcripts")
	}
	return append(found, inodes(fs.Ffree, fs.Files, e.cfg.DataDir)...)
}

// nearest returns a folder or its nearest existing parent.
func nearest(dir string) string {
	for {
		if _, err := os.Stat(dir); err == nil || dir == filepath.Dir(dir) {
			return dir
		}
		dir = filepath.Dir(dir)
	}
}

// writable checks a folder or its nearest existing parent.
func writable(dir, note string) []Finding {
	at := nearest(dir)
	if err := unix.Access(at, unix.W_OK|unix.X_OK); err != nil {
		return failed(fmt.Sprintf("%s cannot be written to: %v", at, err), "let the user that runs Pawl own it")
	}
	return ok(cmp.Or(note, dir+" can be written to"))
}

// LeastGit is the minimum minor version of git 2.
const LeastGit = 38

func (e *exam) git(ctx context.Context) []Finding {
	v, err := git.Version(ctx)
	if err != nil {
		return failed(err.Error(), "install git, or start Pawl with a PATH that has it")
	}
	var major, minor int
	if _, err := fmt.Sscanf(v, "git version %d.%d", &major, &minor); err != nil {
		return warning(
			fmt.Sprintf("its version is unknown: it printed %.100q", v),
			"Pawl needs git 2.38 or newer",
		)
	}
	if major < 2 || major == 2 && minor < LeastGit {
		return failed(v+" is too old", "install git 2.38 or newer")
	}
	return ok(v)
}

func (e *exam) sandbox(ctx context.Context) []Finding {
	var err error
	e.box, err = server.OpenSandbox(ctx, e.cfg.Sandbox, "")
	if refused, is := errors.AsType[*server.PodError](err); is {
		return failed(refused.Problem(), refused.Hint())
	}
	if err != nil {
		return failed(
			err.Error(),
			"install bubblewrap, and let ordinary users create namespaces; docs/security.md says what sandbox.mode none gives up",
		)
	}
	switch e.cfg.Sandbox.Mode {
	case config.SandboxPod:
		return e.pod()
	case config.SandboxNone:
		return warning(
			"sandbox.mode is none: agents can read and write all files that this user can",
			"install bubblewrap and set sandbox.mode to auto",
		)
	}
	if !e.cfg.Sandbox.Walled() {
		return warning(
			"bubblewrap works; sandbox.network is open: agents reach every host that this machine reaches",
			"set it to walled, and list the hosts that programs need in network",
		)
	}
	return ok("bubblewrap works")
}

func (e *exam) limits(context.Context) []Finding {
	how, groups := e.box.Limited()
	if e.inPod() {
		return ok(how + "; the pod's own limits also hold")
	}
	if !groups {
		return warning(how, "give Pawl its own control group (version 2): set Delegate=yes in its systemd unit")
	}
	return ok(how)
}

func (e *exam) readOnly(context.Context) (all []Finding) {
	for _, path := range e.cfg.Sandbox.ReadOnly {
		if _, err := os.Stat(path); err != nil {
			all = append(all, failed(
				fmt.Sprintf("sandbox.read_only: %v", err),
				"no agent starts while it is missing: correct the path or remove it",
			)...)
		}
	}
	return all
}

func (e *exam) paused(context.Context) []Finding {
	if !e.cfg.Policy.Paused {
		return nil
	}
	return warning(
		"policy.paused is true: no attempt starts",
		"set it to false; the threads that it stopped then continue",
	)
}

// budget warns of limits that cover less than users may expect.
func (e *exam) budget(context.Context) (all []Finding) {
	b := e.cfg.Policy.Budget
	if len(e.cfg.Providers) > 0 && b.TokensPerAttempt == 0 && b.USDPerAttempt == 0 {
		all = warning("no attempt has a budget of tokens or money", "set policy.budget.tokens_per_attempt")
	}
	ofThread := b.USDPerAttempt > 0 || b.USDPerThreadPerDay > 0
	ofDay := max(b.USDPerRepositoryPerDay, b.USDPerInstallationPerDay, b.USDPerServerPerDay) > 0
	for _, p := range e.cfg.Providers {
		switch {
		case len(p.PriceList()) > 0:
		case ofThread:
			all = append(all, failed(
				fmt.Sprintf("provider %s has no prices, but a budget in dollars needs them: usd_per_attempt refuses every call to it, and usd_per_thread_per_day has no effect", p.Name),
				"add prices, or use a budget of tokens",
			)...)
		case ofDay:
			all = append(all, warning(
				fmt.Sprintf("provider %s has no prices: the daily budgets in dollars (usd_per_repository_per_day, usd_per_installation_per_day, usd_per_server_per_day) count only costs that its agents report", p.Name),
				"add prices, or set tokens_per_repository_per_day",
			)...)
		}
	}
	return all
}
