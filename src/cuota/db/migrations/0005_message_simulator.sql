-- The sandbox's phones and mailboxes. They stand for consumers outside, so they are kept apart, in their own schema:
-- in production nothing is ever written here.
CREATE SCHEMA message_simulator;

CREATE TABLE message_simulator.inbox (
    key        uuid NOT NULL,                       -- the sender's idempotency key
    channel    text NOT NULL CHECK (channel IN ('text', 'mail')),
    number     bigint GENERATED ALWAYS AS IDENTITY, -- in the order of arrival, whatever the sandbox's clock says
    recipient  text NOT NULL,                       -- ten digits, or an address
    subject    text NOT NULL,
    text       text NOT NULL,
    created_at timestamptz NOT NULL,                -- by the sandbox's clock, which can be moved
    PRIMARY KEY (key, channel)
);
CREATE UNIQUE INDEX inbox_newest ON message_simulator.inbox (number DESC);
CREATE INDEX inbox_of ON message_simulator.inbox (lower(recipient), number DESC);

GRANT USAGE ON SCHEMA message_simulator TO cuota_app;
GRANT SELECT, INSERT, DELETE ON message_simulator.inbox TO cuota_app;
