-- Events for merchants: a feed that merchants read, and webhooks that the service sends.

-- Events that are not in the feed yet. A row is written with its event, and deleted when the event is published.
CREATE TABLE outbox (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    sequence    integer NOT NULL,
    PRIMARY KEY (merchant_id, order_id, sequence)
);

-- One row for each merchant. Its lock serializes publishing, so positions have no gaps that are filled later.
CREATE TABLE feeds (
    merchant_id   uuid PRIMARY KEY,
    last_position bigint NOT NULL
);

CREATE TABLE feed (
    merchant_id uuid NOT NULL,
    position    bigint NOT NULL CHECK (position > 0),
    order_id    uuid NOT NULL,
    sequence    integer NOT NULL,
    PRIMARY KEY (merchant_id, position)
);
CREATE UNIQUE INDEX feed_event ON feed (merchant_id, order_id, sequence);

CREATE TABLE webhook_endpoints (
    merchant_id        uuid NOT NULL,
    endpoint_id        uuid NOT NULL,
    url                text NOT NULL,
    description        text NOT NULL DEFAULT '',
    state              text NOT NULL CHECK (state IN ('active', 'paused', 'deleted')),
    secret             bytea NOT NULL,              -- AES-GCM
    old_secret         bytea,                       -- AES-GCM; signs too until it expires
    old_secret_ends_at timestamptz,
    created_at         timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, endpoint_id)
);

-- One row for each event and receiver. A receiver is a registered endpoint, or the order's own address (all zero).
CREATE TABLE deliveries (
    merchant_id  uuid NOT NULL,
    order_id     uuid NOT NULL,
    sequence     integer NOT NULL,
    receiver     uuid NOT NULL,
    position     bigint NOT NULL,
    url          text NOT NULL,
    host         text NOT NULL,                     -- host and port of the url
    state        text NOT NULL CHECK (state IN (
        'pending',                                  -- waits for an earlier event or for its next try
        'delivered',                                -- acknowledged with 2xx
        'parked'                                    -- the last try failed: kept, visible, and can be sent again
    )),
    tries        smallint NOT NULL DEFAULT 0,       -- tries that have begun, including one in progress
    failed       smallint NOT NULL DEFAULT 0,       -- tries that ended without a 2xx
    try_at       timestamptz,                       -- null once it is delivered or parked
    created_at   timestamptz NOT NULL,
    settled_at   timestamptz,
    PRIMARY KEY (merchant_id, order_id, receiver, sequence),
    CONSTRAINT pending_has_a_time CHECK ((state = 'pending') = (try_at IS NOT NULL))
);
-- A receiver's queue, so that the backlog of a dead receiver need not be read to find other receivers.
CREATE INDEX deliveries_due ON deliveries (merchant_id, receiver, host, try_at, position) WHERE state = 'pending';
-- Not by receiver: without statistics, the planner would prefer such an index to the primary key.
CREATE INDEX deliveries_position ON deliveries (merchant_id, position);

CREATE TABLE delivery_attempts (
    merchant_id uuid NOT NULL,
    order_id    uuid NOT NULL,
    sequence    integer NOT NULL,
    receiver    uuid NOT NULL,
    number      integer NOT NULL,
    at          timestamptz NOT NULL,
    status      smallint,                           -- null if there was no answer
    ms          integer NOT NULL,
    error       text,
    answer      bytea,                              -- the first KiB
    PRIMARY KEY (merchant_id, order_id, sequence, receiver, number)
);

-- The payer's data as agreed: the authorization's event reports it to the merchant.
ALTER TABLE plans ADD COLUMN payer json;

-- How many warnings about the end of the authorization were sent.
ALTER TABLE orders ADD COLUMN warned smallint NOT NULL DEFAULT 0 CHECK (warned BETWEEN 0 AND 2);

GRANT SELECT, INSERT, DELETE ON outbox TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON feeds, deliveries, webhook_endpoints TO cuota_app;
GRANT SELECT, INSERT ON feed, delivery_attempts TO cuota_app;

-- Events of earlier releases are put into the feed too, but no webhook is sent about them.
INSERT INTO feed (merchant_id, position, order_id, sequence)
    SELECT merchant_id, row_number() OVER (PARTITION BY merchant_id ORDER BY created_at, order_id, sequence),
        order_id, sequence FROM events;
INSERT INTO feeds (merchant_id, last_position) SELECT merchant_id, max(position) FROM feed GROUP BY merchant_id;
