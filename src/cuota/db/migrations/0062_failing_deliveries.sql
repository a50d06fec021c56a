-- The dashboard lists and counts the deliveries that have failed and are retried. Without this index, it reads the waiting deliveries
-- until it finds some, and thousands of deliveries of a paused endpoint hide the failing ones of another endpoint. The index contains
-- few rows: a delivery leaves it when it arrives or is parked.
-- Writes of deliveries wait while the index is built. To avoid the wait, create this index on a large table before the upgrade
-- (docs/upgrade.md).
CREATE INDEX IF NOT EXISTS deliveries_failing ON deliveries (merchant_id, receiver, try_at, position)
    WHERE state = 'pending' AND failed > 0;
