-- +goose Up
-- The schema of v0.1.0. Versions 1 to 10 were never released.
-- Times are microseconds since 1970 in UTC; 0 means none.

CREATE TABLE threads (
    id          INTEGER PRIMARY KEY,
    owner       TEXT    NOT NULL,             -- '' once the thread is forgotten and only its events remain to be deleted
    name        TEXT    NOT NULL,
    number      INTEGER NOT NULL,             -- 0 for the log of a repository or of the server
    last_seq    INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT    NOT NULL DEFAULT '',
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    account     TEXT    NOT NULL DEFAULT '',  -- that the lease's holder runs an attempt on
    note        BLOB,                         -- what the running attempt has used so far, as JSON
    queued_at   INTEGER NOT NULL DEFAULT 0,   -- when the thread became due
    urgent      INTEGER NOT NULL DEFAULT 0,   -- 1 if a user's command made it due
    wake_at     INTEGER NOT NULL DEFAULT 0,   -- when a wait or a retry ends
    later_at    INTEGER NOT NULL DEFAULT 0,   -- the wake_at that a retry replaced; 1 if there was none, 0 if wake_at is no retry
    failures    INTEGER NOT NULL DEFAULT 0,   -- steps in a row that failed
    active      INTEGER NOT NULL DEFAULT 0,   -- 1 once there was a decision, an attempt or a wait
    kept_at     INTEGER NOT NULL DEFAULT 0,   -- the updated_at at which the cleaning kept the thread
    updated_at  INTEGER NOT NULL,
    UNIQUE (owner, name, number)
) STRICT;
CREATE INDEX threads_queued ON threads (urgent DESC, queued_at) WHERE queued_at > 0;
CREATE INDEX threads_wake ON threads (wake_at) WHERE wake_at > 0;
CREATE INDEX threads_lease ON threads (lease_until) WHERE lease_until > 0;
CREATE INDEX threads_account ON threads (account) WHERE account <> '';
CREATE INDEX threads_active ON threads (updated_at) WHERE active = 1;
CREATE INDEX threads_clean ON threads (updated_at) WHERE kept_at <> updated_at;

CREATE TABLE events (
    thread_id INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       INTEGER NOT NULL,
    key       TEXT,
    kind      TEXT    NOT NULL,
    at        INTEGER NOT NULL,
    data      TEXT    NOT NULL,
    PRIMARY KEY (thread_id, seq)
) STRICT;
CREATE UNIQUE INDEX events_key ON events (thread_id, key) WHERE key IS NOT NULL;

-- The pull requests whose events belong to another thread.
CREATE TABLE aliases (
    owner     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    thread_id INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, name, number)
) STRICT;
CREATE INDEX aliases_thread ON aliases (thread_id);

CREATE TABLE breakers (
    account TEXT PRIMARY KEY,
    state   TEXT NOT NULL     -- a policy.Breaker as JSON
) STRICT;

CREATE TABLE windows (
    account TEXT NOT NULL,
    name    TEXT NOT NULL,
    seen_at INTEGER NOT NULL,
    state   TEXT NOT NULL,     -- a policy.Meter as JSON
    PRIMARY KEY (account, name)
) STRICT;

CREATE TABLE cooldowns (
    repo    TEXT    NOT NULL,
    backend TEXT    NOT NULL,
    model   TEXT    NOT NULL,
    effort  TEXT    NOT NULL,
    until   INTEGER NOT NULL DEFAULT 0,
    runaway INTEGER NOT NULL DEFAULT 0,  -- 1 if only a user's command ends it
    state   TEXT    NOT NULL,            -- a policy.Cooldown as JSON
    thread  TEXT    NOT NULL,
    PRIMARY KEY (repo, backend, model, effort)
) STRICT;
CREATE INDEX cooldowns_until ON cooldowns (until);

-- One row for each attempt, written in the transaction that decides whether the global limits allow it.
CREATE TABLE attempts (
    thread_id    INTEGER NOT NULL,
    n            INTEGER NOT NULL,
    repo         TEXT    NOT NULL,
    installation INTEGER NOT NULL,
    account      TEXT    NOT NULL,
    at           INTEGER NOT NULL,
    tokens       INTEGER NOT NULL DEFAULT 0,
    micro_usd    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, n)
) STRICT;
CREATE INDEX attempts_at ON attempts (at);

CREATE TABLE graded (
    id         TEXT    PRIMARY KEY,
    at         INTEGER NOT NULL,
    backend    TEXT    NOT NULL,
    repo       TEXT    NOT NULL,
    data       BLOB    NOT NULL,  -- a learning.Graded as JSON
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX graded_at ON graded (at);

CREATE TABLE shared (
    key        TEXT    PRIMARY KEY,
    data       BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

CREATE TABLE deliveries (
    guid        TEXT    PRIMARY KEY,
    event       TEXT    NOT NULL,
    payload     BLOB,                         -- as GitHub sent it; NULL once it is cleaned away
    received_at INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    note        TEXT    NOT NULL DEFAULT '',
    tries       INTEGER NOT NULL DEFAULT 0,
    retry_at    INTEGER NOT NULL,             -- when it is due; 0 once it is handled or given up
    urgent      INTEGER NOT NULL DEFAULT 0    -- 1 for what users may ask for
) STRICT;
CREATE INDEX deliveries_due ON deliveries (urgent, retry_at) WHERE retry_at > 0;
CREATE INDEX deliveries_odd ON deliveries (state) WHERE state IN ('failed', 'unparsable');
CREATE INDEX deliveries_received ON deliveries (received_at);
CREATE INDEX deliveries_payload ON deliveries (received_at) WHERE payload IS NOT NULL AND retry_at = 0;
