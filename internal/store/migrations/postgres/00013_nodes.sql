-- +goose Up
-- One row for each running server. See Nodes.Absent.
CREATE TABLE nodes (
    name    TEXT   PRIMARY KEY,
    state   TEXT   NOT NULL,            -- a policy.Node as JSON
    present BIGINT NOT NULL DEFAULT 0,  -- 1 once it holds its presence lock
    seen_at BIGINT NOT NULL
);

-- What the waiting attempt needs of a node, a policy.PlaceOf; '' if any node may take the next step.
ALTER TABLE threads ADD COLUMN place TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_place ON threads (place) WHERE place <> '';
