.PHONY: demo check test test-all attack race lint bench soak arena stranger build release-dry-run fuzz eval worlds pictures clis-latest clean

VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
PROGRAM := bin/pawl
COMMIT := $(shell git rev-parse HEAD 2>/dev/null || echo unknown)

# The whole main job on loopback; needs Go and git.
demo:
	go run ./cmd/pawl demo

# Lint, and the short tests: the loop to work in. Two minutes on two processors; packages
# that did not change are not tested again. Some wait for locks and time limits, so two
# processors have room for four packages.
check: lint
	go test -short -p 4 ./...

# Every test of the main module that needs Go and git only. Installs nothing. At the end it names what it
# left to test-all.
test:
	.ci/test

# Every test. It first says what the tests need and this machine lacks (Debian packages,
# 1.2 GB of agent CLIs) and installs it where it can; at the end it lists what was skipped
# and why.
test-all:
	.ci/test-all

# What docs/security.md promises, attacked: every test that it names, as this user and
# as an ordinary one, as a table.
attack:
	.ci/attack

race:
	.ci/test-all -race

lint:
	.ci/lint

# The built program from outside, as one table of what, measured, aim and met;
# then the benchmarks of three packages.
bench:
	cd lab && go run ./bench
	go test -run '^$$' -bench . -benchtime 200ms ./policy/simhash ./internal/agent ./internal/store

# Kills servers at random while people ask for work, SOAK_KILLS (1000) times within
# SOAK_TIME (30m; two processors need about half of it), and looks after every 200
# whether anything was lost, doubled or forgotten. The seed is printed; SOAK_SEED
# repeats what is chosen by chance, but not what a kill meets. With
# SOAK_DATABASE=postgres three nodes share a database, and with SOAK_SIGNAL=TERM every
# restart is orderly. Each delivery comes five times, to any node, the copies seconds
# late; GitHub's side is judged by itself as well as the database. Before that, SOAK_SEQUENCES
# (20000) random sequences of events in virtual time, of which make test plays 200:
# about 25 ms of two processors each.
soak:
	go test -count 1 -timeout 2h -run TestNoSequenceOfEvents ./solver -seeds $${SOAK_SEQUENCES:-20000}
	cd lab && PAWL_TEST_ALL=1 SOAK_KILLS=$${SOAK_KILLS:-1000} SOAK_TIME=$${SOAK_TIME:-30m} go test -count 1 -timeout 2h -run TestRandomKillsUnderLoad -v ./soak

# A server against some sixty bots that never tire, for two days of virtual time each.
# A table says what came of each bot, and its bound. make test-all plays a few of them.
arena:
	cd lab && go test -count 1 -timeout 30m -parallel 8 -run TestNoBotOfTheArena -v ./arena -arena

# Somebody who has never seen Pawl, from an empty root to the first solved issue on a fake
# GitHub: from the sources and with the program, by webhook and by polling. Counts commands
# and seconds; needs bubblewrap.
stranger:
	cd lab && go run ./stranger

build:
	CGO_ENABLED=0 go build -trimpath -ldflags '-s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)' -o $(PROGRAM) ./cmd/pawl

# What a tag would publish, in dist/release: built and checked without a tag, a daemon or secrets.
release-dry-run:
	.ci/release

# Every fuzz target for FUZZTIME (20s).
fuzz:
	.ci/fuzz

# How the verdicts do on the recorded runs and corpora, where ../shared is there.
eval:
	go test -timeout 1h -tags eval -run Eval -v ./...
	cd lab && go test -timeout 1h -tags eval -run Eval -v ./...

# What the newest versions of the agent CLIs change: installs them from npm into a
# temporary folder (1.3 GB) and has them play the recorded scenarios.
clis-latest:
	.ci/clis-latest

# How well the choice of a backend learns: 200 seeds of each made-up world, as a table. Then a month of accounts with
# usage windows, under three policies.
worlds:
	cd lab && go run ./worlds
	cd lab && go run ./worlds -headroom -seeds 5

# The pictures of README and docs: the built program against the fake GitHub, in chromium.
pictures:
	mkdir -p docs/pictures
	cd lab && go test -count 1 -timeout 10m -tags eval -run TestPictures ./pages -pictures $(CURDIR)/docs/pictures

clean:
	rm -rf bin dist
	go clean -testcache
