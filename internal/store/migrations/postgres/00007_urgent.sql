-- +goose Up
-- urgent is 1 for what a person may ask for, which is handed out first. Buttons among
-- what is due now stay what they were: their payloads are packed.
ALTER TABLE deliveries ADD COLUMN urgent BIGINT NOT NULL DEFAULT 0;
UPDATE deliveries SET urgent = 1
WHERE retry_at > 0 AND event IN ('issue_comment', 'issues', 'pull_request_review', 'pull_request_review_comment');
DROP INDEX deliveries_retry;
CREATE INDEX deliveries_due ON deliveries (urgent, retry_at) WHERE retry_at > 0;

-- +goose Down
DROP INDEX deliveries_due;
CREATE INDEX deliveries_retry ON deliveries (retry_at) WHERE retry_at > 0;
ALTER TABLE deliveries DROP COLUMN urgent;
