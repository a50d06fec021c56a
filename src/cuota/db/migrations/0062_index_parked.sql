-- The dashboard lists and counts the deliveries that were parked lately: after an outage of days they are the events that a merchant has
-- missed. Almost all deliveries arrive, so the index contains few rows.
-- Writes of deliveries wait while the index is built. To avoid the wait, create this index on a large table before the upgrade
-- (docs/upgrade.md).
CREATE INDEX IF NOT EXISTS deliveries_parked ON deliveries (merchant_id, receiver, settled_at, position) WHERE state = 'parked';
