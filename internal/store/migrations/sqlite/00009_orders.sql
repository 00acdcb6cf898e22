-- +goose Up
-- urgent is 1 for a thread that a person's order woke: its step comes before those of
-- threads that machines woke. What an earlier version could not read was final there:
-- this one tries it.
ALTER TABLE threads ADD COLUMN urgent INTEGER NOT NULL DEFAULT 0;
DROP INDEX threads_queued;
CREATE INDEX threads_queued ON threads (urgent DESC, queued_at) WHERE queued_at > 0;
UPDATE deliveries SET retry_at = 1 WHERE state = 'unparsable' AND retry_at = 0 AND payload IS NOT NULL;

-- +goose Down
DROP INDEX threads_queued;
CREATE INDEX threads_queued ON threads (queued_at) WHERE queued_at > 0;
ALTER TABLE threads DROP COLUMN urgent;
