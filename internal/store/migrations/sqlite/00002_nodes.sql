-- +goose Up
-- account is what the holder of the lease runs an attempt on; kept_at is the
-- updated_at of a thread that the cleaning looked at and kept.
ALTER TABLE threads ADD COLUMN account TEXT NOT NULL DEFAULT '';
ALTER TABLE threads ADD COLUMN kept_at INTEGER NOT NULL DEFAULT 0;
CREATE INDEX threads_account ON threads (account) WHERE account <> '';
CREATE INDEX threads_clean ON threads (updated_at) WHERE kept_at <> updated_at;
CREATE INDEX aliases_thread ON aliases (thread_id);

CREATE TABLE graded (
    id         TEXT    PRIMARY KEY,
    at         INTEGER NOT NULL,
    backend    TEXT    NOT NULL,
    repo       TEXT    NOT NULL,
    data       BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;
CREATE INDEX graded_at ON graded (at);

CREATE TABLE shared (
    key        TEXT    PRIMARY KEY,
    data       BLOB    NOT NULL,
    updated_at INTEGER NOT NULL
) STRICT;

-- +goose Down
DROP TABLE shared;
DROP TABLE graded;
DROP INDEX aliases_thread;
DROP INDEX threads_clean;
DROP INDEX threads_account;
ALTER TABLE threads DROP COLUMN kept_at;
ALTER TABLE threads DROP COLUMN account;
