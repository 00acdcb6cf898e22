-- +goose Up
-- One row for each attempt, written in the transaction that asks whether there may be
-- one more: it is counted above its thread, over all nodes and whatever began it.
CREATE TABLE attempts (
    thread_id    INTEGER NOT NULL,
    n            INTEGER NOT NULL,
    repo         TEXT    NOT NULL,
    installation INTEGER NOT NULL,
    at           INTEGER NOT NULL,
    tokens       INTEGER NOT NULL DEFAULT 0,
    micro_usd    INTEGER NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, n)
);
CREATE INDEX attempts_at ON attempts (at);

-- +goose Down
DROP TABLE attempts;
