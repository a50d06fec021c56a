-- The sandbox's card network. It stands for a company outside, so it keeps its own books, in its own schema,
-- and commits apart from ours: an answer can be lost, and looked up again by its key.
CREATE SCHEMA card_simulator;

CREATE TABLE card_simulator.cards (
    token      text PRIMARY KEY,
    brand      text NOT NULL,
    last4      text NOT NULL,
    behaviour  text NOT NULL CHECK (behaviour IN ('pays', 'declined', 'no_funds', 'pays_once', 'disputed')),
    created_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE card_simulator.charges (
    key        uuid PRIMARY KEY,
    token      text NOT NULL REFERENCES card_simulator.cards,
    amount     bigint NOT NULL CHECK (amount > 0),
    refunded   bigint NOT NULL DEFAULT 0,
    approved   boolean NOT NULL,
    reason     text,
    created_at timestamptz NOT NULL DEFAULT now(),
    CONSTRAINT no_over_refund CHECK (refunded BETWEEN 0 AND amount AND (approved OR refunded = 0))
);
CREATE INDEX charges_token ON card_simulator.charges (token);

CREATE TABLE card_simulator.refunds (
    key        uuid PRIMARY KEY,
    charge     uuid NOT NULL REFERENCES card_simulator.charges,
    amount     bigint NOT NULL CHECK (amount > 0),
    created_at timestamptz NOT NULL DEFAULT now()
);

GRANT USAGE ON SCHEMA card_simulator TO cuota_app;
GRANT SELECT, INSERT ON card_simulator.cards, card_simulator.refunds TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON card_simulator.charges TO cuota_app;
