-- +goose Up
-- What the waiting attempt needs of a node, a policy.PlaceOf; '' if any node may take the next step.
ALTER TABLE threads ADD COLUMN place TEXT NOT NULL DEFAULT '';
CREATE INDEX threads_place ON threads (place) WHERE place <> '';
