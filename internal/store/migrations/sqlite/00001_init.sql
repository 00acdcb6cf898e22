-- +goose Up
-- Times are microseconds since 1970 in UTC; 0 is "none".
CREATE TABLE threads (
    id          INTEGER PRIMARY KEY,
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    number      INTEGER NOT NULL,
    last_seq    INTEGER NOT NULL DEFAULT 0,
    lease_owner TEXT    NOT NULL DEFAULT '',
    lease_epoch INTEGER NOT NULL DEFAULT 0,
    lease_until INTEGER NOT NULL DEFAULT 0,
    wake_at     INTEGER NOT NULL DEFAULT 0,
    queued_at   INTEGER NOT NULL DEFAULT 0,
    requeue_at  INTEGER NOT NULL DEFAULT 0,
    updated_at  INTEGER NOT NULL,
    active      INTEGER NOT NULL DEFAULT 0,
    UNIQUE (owner, name, number)
) STRICT;
CREATE INDEX threads_requeue ON threads (requeue_at) WHERE requeue_at > 0;
CREATE INDEX threads_wake ON threads (wake_at) WHERE wake_at > 0;
CREATE INDEX threads_lease ON threads (lease_until) WHERE lease_until > 0;
CREATE INDEX threads_active ON threads (updated_at) WHERE active = 1;

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

CREATE TABLE aliases (
    owner     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    number    INTEGER NOT NULL,
    thread_id INTEGER NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, name, number)
) STRICT;

CREATE TABLE breakers (
    account TEXT PRIMARY KEY,
    state   TEXT NOT NULL
) STRICT;

CREATE TABLE cooldowns (
    backend TEXT    NOT NULL,
    repo    TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    until   INTEGER NOT NULL,
    thread  TEXT    NOT NULL,
    PRIMARY KEY (repo, backend)
) STRICT;
CREATE INDEX cooldowns_until ON cooldowns (until);

CREATE TABLE deliveries (
    guid        TEXT    PRIMARY KEY,
    event       TEXT    NOT NULL,
    payload     BLOB,
    received_at INTEGER NOT NULL,
    state       TEXT    NOT NULL,
    note        TEXT    NOT NULL DEFAULT '',
    tries       INTEGER NOT NULL DEFAULT 0,
    retry_at    INTEGER NOT NULL
) STRICT;
CREATE INDEX deliveries_state ON deliveries (state, received_at);
CREATE INDEX deliveries_received ON deliveries (received_at);
CREATE INDEX deliveries_retry ON deliveries (retry_at) WHERE retry_at > 0;
CREATE INDEX deliveries_payload ON deliveries (received_at) WHERE payload IS NOT NULL AND retry_at = 0;

-- +goose Down
DROP TABLE deliveries;
DROP TABLE cooldowns;
DROP TABLE breakers;
DROP TABLE aliases;
DROP TABLE events;
DROP TABLE threads;
