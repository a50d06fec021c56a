-- The rail to Stripe keeps one customer there for each consumer. `account` is a hash of the publishable key, so that another
-- Stripe account gets customers of its own. The card's own token names its customer too: this table is for new cards.
CREATE SCHEMA card_processor;

CREATE TABLE card_processor.customers (
    consumer_id uuid NOT NULL,
    account     text NOT NULL,
    customer    text NOT NULL,                      -- Stripe's id, such as cus_NffrFeUfNV2Hib
    created_at  timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (consumer_id, account)
);

GRANT USAGE ON SCHEMA card_processor TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON card_processor.customers TO cuota_app;
