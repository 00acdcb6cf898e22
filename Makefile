.PHONY: demo check test test-all attack race lint bench soak arena stranger build release-dry-run fuzz eval worlds pictures clis-latest clean

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PROGRAM := bin/pawl
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

# Shows Pawl's main task, from issue to pull request, on loopback. Needs Go and git.
demo:
	go run ./cmd/pawl demo

# Lint and the short tests, for everyday work. Two minutes on two processors; unchanged packages
# are not tested again. Some tests wait for locks and time limits, so two processors have room for
# four packages.
check: lint
	go test -short -p 4 ./...

# Every test of the main module that needs only Go and git. Installs nothing. At the end it lists the
# tests that only test-all runs.
test:
	.ci/test

# Every test. It first lists missing requirements (Debian packages, 1.2 GB of agent CLIs) and
# installs them if possible. At the end it lists the skipped tests with the reasons.
test-all:
	.ci/test-all

# Runs every attack that docs/security.md names, as this user and as an ordinary user, and prints a table.
attack:
	.ci/attack

race:
	.ci/test-all -race

lint:
	.ci/lint

# Measures the built program from outside, as a table of measurements and targets; then runs the
# benchmarks of three packages.
bench:
	cd lab && go run ./bench
	go test -run '^$$' -bench . -benchtime 200ms ./policy/simhash ./internal/agent ./internal/store

# First plays SOAK_SEQUENCES (20000) random sequences of events in virtual time, about 25 ms of two processors each.
# make test plays 200. Then kills servers at random while users request work, SOAK_KILLS (1000) times within SOAK_TIME
# (30m; two processors need about half of it). After every 200 kills, checks that nothing was lost, duplicated or
# forgotten, in the database and on GitHub. Each delivery arrives five times, at any node; the copies arrive seconds
# late. SOAK_SEED repeats the random choices of a printed seed, but not the timing of kills. With
# SOAK_DATABASE=postgres, three nodes with different labels share a database. With SOAK_SIGNAL=TERM, every restart is
# orderly. Finally kills three such nodes 200 times, and stops them in an orderly way 50 times.
soak:
	go test -count 1 -timeout 2h -run TestNoSequenceRunsAwayOrGetsStuck ./solver -seeds $${SOAK_SEQUENCES:-20000}
	cd lab && PAWL_TEST_ALL=1 SOAK_KILLS=$${SOAK_KILLS:-1000} SOAK_TIME=$${SOAK_TIME:-30m} go test -count 1 -timeout 2h -run TestRandomKillsUnderLoad -v ./soak
	cd lab && PAWL_TEST_ALL=1 SOAK_DATABASE=postgres SOAK_SIGNAL= SOAK_KILLS=200 SOAK_STOPS=50 SOAK_TIME=$${SOAK_TIME:-30m} go test -count 1 -timeout 2h -run TestRandomKillsUnderLoad -v ./soak

# Runs a server against about sixty tireless bots, each for two days of virtual time. A table shows each bot's result
# and limit. make test-all runs a few of them.
arena:
	cd lab && go test -count 1 -timeout 30m -parallel 8 -run TestArenaBotsCannotMakePawlRunAway -v ./arena -arena

# Plays a new user, from an empty root to the first solved issue on a fake GitHub: from the sources and with the built
# program, by webhook and by polling. Counts commands and seconds. Needs bubblewrap.
stranger:
	cd lab && go run ./stranger

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o $(PROGRAM) ./cmd/pawl

# Builds and checks a release in dist/release, without a tag, a daemon or secrets.
release-dry-run:
	.ci/release

# Runs every fuzz target for FUZZTIME (20s).
fuzz:
	.ci/fuzz

# Measures the verdicts on the recorded runs and corpora, if ../shared exists.
eval:
	go test -timeout 1h -tags eval -run Eval -v ./...
	cd lab && go test -timeout 1h -tags eval -run Eval -v ./...

# Installs the newest versions of the agent CLIs from npm into a temporary folder (1.3 GB), runs the
# recorded scenarios with them, and reports differences.
clis-latest:
	.ci/clis-latest

# Measures how well Pawl learns to choose a backend: 200 seeds of each simulated world, as a table. Then simulates a
# month of accounts with usage windows, under three policies.
worlds:
	cd lab && go run ./worlds
	cd lab && go run ./worlds -headroom -seeds 5

# Takes the pictures of README and docs: the built program against the fake GitHub, in chromium.
pictures:
	mkdir -p docs/pictures
	cd lab && go test -count 1 -timeout 10m -tags eval -run TestPictures ./pages -pictures $(CURDIR)/docs/pictures

clean:
	rm -rf bin dist
	go clean -testcache
