-- +goose Up
-- The rows of deliveries are their queue; River's jobs for them are no more. What
-- was not handled is due, and the indexes cost less when a delivery is stored and
-- when it is finished.
DROP INDEX deliveries_state;
CREATE INDEX deliveries_odd ON deliveries (state) WHERE state IN ('failed', 'unparsable');
UPDATE deliveries SET retry_at = 1 WHERE state = 'received';

-- +goose Down
DROP INDEX deliveries_odd;
CREATE INDEX deliveries_state ON deliveries (state, received_at);
