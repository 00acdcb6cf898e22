-- +goose Up
-- failures counts the steps in a row that did not come to their end. later_at is
-- the wake-up time that a retry took the place of in wake_at: 0 while wake_at is no
-- retry, 1 where nothing was waited for. note is what the running attempt used.
ALTER TABLE threads ADD COLUMN failures BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN later_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads ADD COLUMN note BYTEA;

-- +goose Down
ALTER TABLE threads DROP COLUMN note;
ALTER TABLE threads DROP COLUMN later_at;
ALTER TABLE threads DROP COLUMN failures;
