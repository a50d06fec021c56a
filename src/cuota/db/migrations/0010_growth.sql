-- What is tidied away is found by its age, however many checkouts there are.
CREATE INDEX checkout_sessions_old ON checkout_sessions (created_at);

-- The worker that has a delivery under way, by the name whose advisory lock it holds while it lives.
ALTER TABLE deliveries ADD COLUMN claimed_by bigint;
CREATE INDEX deliveries_claimed ON deliveries (claimed_by, merchant_id) WHERE claimed_by > 0;
