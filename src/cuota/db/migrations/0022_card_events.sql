-- What card processors report by themselves: each event once, however often it is delivered or fetched.
CREATE TABLE card_events (
    rail           text NOT NULL,
    event_id       text NOT NULL,                   -- the processor's own
    kind           text NOT NULL CHECK (kind IN ('charge.changed', 'refund.elsewhere', 'refund.failed', 'card.updated',
        'dispute.opened', 'dispute.changed', 'dispute.closed')),
    at             timestamptz NOT NULL,            -- by the processor's clock
    merchant_id    uuid NOT NULL,
    order_id       uuid NOT NULL,
    charge_id      uuid,
    card_refund_id uuid,
    amount         bigint CHECK (amount >= 0),      -- cents
    reason         text,
    reference      text,                            -- the processor's id of the refund or the dispute
    status         text,                            -- the processor's word
    card_token     text,                            -- of a renewed card, with the rail's name
    card_brand     text,
    card_last4     text CHECK (card_last4 ~ '^[0-9]{4}$'),
    received_at    timestamptz NOT NULL,
    apply_at       timestamptz,                     -- null: applied
    tries          integer NOT NULL DEFAULT 0,
    PRIMARY KEY (rail, event_id)
);
CREATE INDEX card_events_to_apply ON card_events (apply_at) WHERE apply_at IS NOT NULL;
CREATE INDEX card_events_of_an_order ON card_events (merchant_id, order_id);
CREATE INDEX card_events_of_a_rail ON card_events (rail, received_at);
CREATE INDEX card_events_notable ON card_events (at)
    WHERE kind IN ('refund.elsewhere', 'refund.failed', 'dispute.opened', 'dispute.changed', 'dispute.closed');
GRANT SELECT, INSERT, UPDATE ON card_events TO cuota_app;

-- How far each rail's events were fetched. Only one worker at a time fetches them.
CREATE TABLE card_rails (
    rail          text PRIMARY KEY,
    fetched_until timestamptz NOT NULL,             -- by the processor's clock
    fetched_at    timestamptz,                      -- when a fetch last succeeded, by the real clock
    claimed_until timestamptz NOT NULL,
    problem       text                              -- why the last fetch failed; null if it succeeded
);
GRANT SELECT, INSERT, UPDATE ON card_rails TO cuota_app;

-- `cuota rails` reads the charges of the last day. Charges are inserted in this order, so a small index of ranges is enough.
CREATE INDEX charges_created ON charges USING brin (created_at);
