-- +goose Up
-- What is due stands in the row that it is about, and nodes claim it there: River's
-- jobs are no more. A step that an older version was to try again stood in its job
-- alone, so that thread becomes due. The table is made where it is missing so that
-- the statements hold for a new database, too.
CREATE TABLE IF NOT EXISTS river_job (kind TEXT, state TEXT, args JSONB);
UPDATE threads SET queued_at = (extract(epoch FROM clock_timestamp()) * 1000000)::bigint
WHERE queued_at = 0 AND wake_at = 0 AND (owner, name, number) IN (
    SELECT args->'thread'->>'owner', args->'thread'->>'name', (args->'thread'->>'number')::bigint
    FROM river_job WHERE kind = 'step' AND state::text IN ('available', 'pending', 'retryable', 'running', 'scheduled'));
DROP TABLE river_job;
DROP TABLE IF EXISTS river_client_queue;
DROP TABLE IF EXISTS river_client;
DROP TABLE IF EXISTS river_leader;
DROP TABLE IF EXISTS river_queue;
DROP TABLE IF EXISTS river_migration;
DROP FUNCTION IF EXISTS river_job_notify;
DROP FUNCTION IF EXISTS river_job_state_in_bitmask;
DROP TYPE IF EXISTS river_job_state;

DROP INDEX threads_requeue;
ALTER TABLE threads DROP COLUMN requeue_at;
CREATE INDEX threads_queued ON threads (queued_at) WHERE queued_at > 0;

-- +goose Down
DROP INDEX threads_queued;
ALTER TABLE threads ADD COLUMN requeue_at BIGINT NOT NULL DEFAULT 0;
CREATE INDEX threads_requeue ON threads (requeue_at) WHERE requeue_at > 0;
