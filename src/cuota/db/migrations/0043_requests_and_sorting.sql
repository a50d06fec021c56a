-- The request log of a merchant: its API calls, with masked bodies. The id is a UUIDv7, so the key contains the time.
CREATE TABLE api_requests (
    merchant_id uuid NOT NULL,
    request_id  uuid NOT NULL,
    client_id   text NOT NULL,                      -- the credential
    address     text NOT NULL,                      -- the IP address; empty if it is not known
    method      text NOT NULL,
    route       text NOT NULL,                      -- the path's template
    order_id    uuid,
    status      smallint NOT NULL,
    code        text,                               -- the code of a refusal
    ms          real NOT NULL,
    keyed       boolean NOT NULL,                   -- an Idempotency-Key was sent
    query       text,                               -- JSON, masked; null if there was none
    request     text,                               -- JSON, masked; null if there was none, or a note
    response    text,
    CONSTRAINT api_requests_pkey PRIMARY KEY (merchant_id, request_id)
);
CREATE INDEX api_requests_order ON api_requests (merchant_id, order_id, request_id) WHERE order_id IS NOT NULL;
GRANT SELECT, INSERT, DELETE ON api_requests TO cuota_app;

-- The dashboard sorts orders by amount. An order's amount never changes, so a capture changes no indexed column and remains a
-- heap-only update. To avoid the lock, create this index on a large table before the upgrade (docs/upgrade.md).
CREATE INDEX IF NOT EXISTS orders_amount ON orders (merchant_id, amount, order_id);
