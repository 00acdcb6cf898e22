-- +goose Up
-- Cooldowns are of arms: a backend with its model and effort. state is a policy.Rest as JSON, runaway is 1 where only a
-- person ends it. Rows of before have neither model nor effort.
CREATE TABLE rests (
    repo    TEXT    NOT NULL,
    backend TEXT    NOT NULL,
    model   TEXT    NOT NULL DEFAULT '',
    effort  TEXT    NOT NULL DEFAULT '',
    until   BIGINT  NOT NULL DEFAULT 0,
    runaway BIGINT  NOT NULL DEFAULT 0,
    state   TEXT    NOT NULL,
    thread  TEXT    NOT NULL,
    PRIMARY KEY (repo, backend, model, effort)
);
INSERT INTO rests (repo, backend, until, state, thread)
SELECT repo, backend, until, json_build_object('class', class, 'until', to_char(to_timestamp(until / 1000000) AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"'))::text, thread FROM cooldowns;
DROP TABLE cooldowns;
ALTER TABLE rests RENAME TO cooldowns;
CREATE INDEX cooldowns_until ON cooldowns (until);

-- +goose Down
DROP TABLE cooldowns;
CREATE TABLE cooldowns (
    backend TEXT    NOT NULL,
    repo    TEXT    NOT NULL,
    class   TEXT    NOT NULL,
    until   BIGINT  NOT NULL,
    thread  TEXT    NOT NULL,
    PRIMARY KEY (repo, backend)
);
CREATE INDEX cooldowns_until ON cooldowns (until);
