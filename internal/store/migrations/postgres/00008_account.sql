-- +goose Up
-- The account of a provider that an attempt was on; empty for those that began before.
ALTER TABLE attempts ADD COLUMN account TEXT NOT NULL DEFAULT '';

-- +goose Down
ALTER TABLE attempts DROP COLUMN account;
