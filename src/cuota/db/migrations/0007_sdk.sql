-- Checkouts that a signed request started: by the browser's script, by the gateway's entry, or by a shop system (SMI).

-- The same statement writes this row and the order. The row has the data that the order does not have. Only the origin may
-- change, when another of the merchant's pages sends the same signed text.
CREATE TABLE sdk_checkouts (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    body_hash   bytea,                              -- SHA-256 of what was signed: the same text is the same order
    origin      text,                               -- the one web origin that the checkout's pages talk to
    display     text NOT NULL CHECK (display IN ('popup', 'iframe', 'redirect')),
    flow        text NOT NULL CHECK (flow IN ('standard', 'express')),
    integration text NOT NULL CHECK (integration IN ('api', 'virtual_card', 'gateway', 'smi')),
    additional  json,                               -- what the merchant says about its customer, for the risk decision
    PRIMARY KEY (merchant_id, order_id)
);
CREATE UNIQUE INDEX sdk_checkouts_body ON sdk_checkouts (merchant_id, body_hash) WHERE body_hash IS NOT NULL;

-- How this browser opened the checkout; null: by a link in its own window. In a frame, the secret is in the address.
ALTER TABLE checkout_sessions ADD COLUMN display text CHECK (display IN ('popup', 'iframe', 'redirect'));

-- Express flow: where the consumer wants it sent.
ALTER TABLE checkout_sessions ADD COLUMN shipping json;

GRANT SELECT, INSERT, UPDATE (origin) ON sdk_checkouts TO cuota_app;
