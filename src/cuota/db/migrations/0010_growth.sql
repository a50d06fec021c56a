-- The cleanup job finds old sessions by this index, so its cost does not depend on the number of checkouts.
CREATE INDEX checkout_sessions_old ON checkout_sessions (created_at);

-- The worker that claimed the delivery. Each worker holds an advisory lock on its name while it is alive.
ALTER TABLE deliveries ADD COLUMN claimed_by bigint;
CREATE INDEX deliveries_claimed ON deliveries (claimed_by, merchant_id) WHERE claimed_by > 0;
