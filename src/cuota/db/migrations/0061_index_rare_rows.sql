-- The dashboard lists and counts the deliveries that have failed and are retried. Without this index, it reads the waiting deliveries
-- until it finds some, and thousands of deliveries of a paused endpoint hide the failing ones of another endpoint. The index contains
-- few rows: a delivery leaves it when it arrives or is parked.
-- Writes of deliveries wait while the index is built. To avoid the wait, create this index on a large table before the upgrade
-- (docs/upgrade.md).
CREATE INDEX IF NOT EXISTS deliveries_failing ON deliveries (merchant_id, receiver, try_at, position)
    WHERE state = 'pending' AND failed > 0;

-- The operator lists the payouts of all merchants by status. Almost all payouts are paid: without this index, the list of the returned
-- ones reads every payout that was ever made.
CREATE INDEX IF NOT EXISTS payouts_unpaid ON payouts (status, closed_at DESC, payout_id) WHERE status <> 'paid';

-- A merchant's disputes that are not closed are few. Without this index, its first page and its lists read all disputes that it ever had.
CREATE INDEX IF NOT EXISTS disputes_going ON disputes (merchant_id, dispute_id) WHERE status <> 'closed';
