-- +goose Up
-- One row for each attempt, written in the transaction that asks whether there may be
-- one more: it is counted above its thread, over all nodes and whatever began it.
CREATE TABLE attempts (
    thread_id    BIGINT NOT NULL,
    n            BIGINT NOT NULL,
    repo         TEXT    NOT NULL,
    installation BIGINT NOT NULL,
    at           BIGINT NOT NULL,
    tokens       BIGINT NOT NULL DEFAULT 0,
    micro_usd    BIGINT NOT NULL DEFAULT 0,
    PRIMARY KEY (thread_id, n)
);
CREATE INDEX attempts_at ON attempts (at);

-- +goose Down
DROP TABLE attempts;
