-- +goose Up
-- Times are microseconds since 1970 in UTC; 0 is "none".
CREATE TABLE threads (
    id          BIGINT  GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    owner       TEXT    NOT NULL,
    name        TEXT    NOT NULL,
    number      BIGINT  NOT NULL,
    last_seq    BIGINT  NOT NULL DEFAULT 0,
    lease_owner TEXT    NOT NULL DEFAULT '',
    lease_epoch BIGINT  NOT NULL DEFAULT 0,
    lease_until BIGINT  NOT NULL DEFAULT 0,
    wake_at     BIGINT  NOT NULL DEFAULT 0,
    queued_at   BIGINT  NOT NULL DEFAULT 0,
    requeue_at  BIGINT  NOT NULL DEFAULT 0,
    updated_at  BIGINT  NOT NULL,
    active      BIGINT  NOT NULL DEFAULT 0,
    UNIQUE (owner, name, number)
);
CREATE INDEX threads_requeue ON threads (requeue_at) WHERE requeue_at > 0;
CREATE INDEX threads_wake ON threads (wake_at) WHERE wake_at > 0;
CREATE INDEX threads_lease ON threads (lease_until) WHERE lease_until > 0;
CREATE INDEX threads_active ON threads (updated_at) WHERE active = 1;

CREATE TABLE events (
    thread_id BIGINT  NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    seq       BIGINT  NOT NULL,
    key       TEXT,
    kind      TEXT    NOT NULL,
    at        BIGINT  NOT NULL,
    data      TEXT    NOT NULL,
    PRIMARY KEY (thread_id, seq)
);
CREATE UNIQUE INDEX events_key ON events (thread_id, key) WHERE key IS NOT NULL;

CREATE TABLE aliases (
    owner     TEXT    NOT NULL,
    name      TEXT    NOT NULL,
    number    BIGINT  NOT NULL,
    thread_id BIGINT  NOT NULL REFERENCES threads (id) ON DELETE CASCADE,
    PRIMARY KEY (owner, name, number)
);

CREATE TABLE breakers (
    account TEXT PRIMARY KEY,
    state   TEXT NOT NULL
);

CREATE TABLE cooldowns (
    backend TEXT    NOT NULL,
    repo    TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    until   BIGINT  NOT NULL,
    thread  TEXT    NOT NULL,
    PRIMARY KEY (repo, backend)
);
CREATE INDEX cooldowns_until ON cooldowns (until);

CREATE TABLE deliveries (
    guid        TEXT    PRIMARY KEY,
    event       TEXT    NOT NULL,
    payload     BYTEA,
    received_at BIGINT  NOT NULL,
    state       TEXT    NOT NULL,
    note        TEXT    NOT NULL DEFAULT '',
    tries       BIGINT  NOT NULL DEFAULT 0,
    retry_at    BIGINT  NOT NULL
);
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
