-- What card processors reported by themselves. Each event is stored once, and applied once by a background job.
CREATE TABLE card_events (
    merchant_id    uuid NOT NULL,
    rail           text NOT NULL,
    event_id       text NOT NULL CHECK (length(event_id) BETWEEN 1 AND 255), -- the processor's id
    order_id       uuid NOT NULL,
    kind           text NOT NULL CHECK (kind IN ('charge.changed', 'refund.elsewhere', 'refund.failed', 'card.updated',
        'dispute.opened', 'dispute.changed', 'dispute.closed')),
    at             timestamptz NOT NULL,            -- when it happened at the processor
    charge_id      uuid,
    card_refund_id uuid,
    amount         bigint,
    reason         text,
    reference      text,                            -- the processor's id of a refund or a dispute
    status         text,                            -- the processor's word for the state
    card_token     text,                            -- of a renewed card, with the rail's name in front
    card_brand     text,
    card_last4     text CHECK (card_last4 ~ '^[0-9]{4}$'),
    received_at    timestamptz NOT NULL,
    try_at         timestamptz,                     -- when it is applied; null afterwards
    tries          smallint NOT NULL DEFAULT 0,
    applied_at     timestamptz,
    PRIMARY KEY (merchant_id, rail, event_id),
    CONSTRAINT applied_or_due CHECK ((applied_at IS NULL) = (try_at IS NOT NULL))
);
CREATE INDEX card_events_due ON card_events (try_at, merchant_id) WHERE try_at IS NOT NULL;
CREATE INDEX card_events_order ON card_events (merchant_id, order_id);
CREATE INDEX card_events_last ON card_events (rail, received_at);
CREATE INDEX card_events_kept ON card_events (kind, at) WHERE kind <> 'charge.changed' AND kind <> 'card.updated';
GRANT SELECT, INSERT, UPDATE ON card_events TO cuota_app;

-- How far the events of each rail's processor were fetched. Claimed by a worker that sets checked_at and due_at.
CREATE TABLE card_rails (
    name             text PRIMARY KEY,
    reconciled_until timestamptz NOT NULL,          -- by the service's clock
    due_at           timestamptz NOT NULL,          -- by the service's clock, which the sandbox moves
    checked_at       timestamptz NOT NULL,          -- by the real clock
    problem          text                           -- why the last fetch failed
);
GRANT SELECT, INSERT, UPDATE ON card_rails TO cuota_app;

-- A card refund that failed stays failed, and one that succeeded may only fail later, once.
CREATE FUNCTION card_refunds_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND (OLD.state = 'failed' OR NEW.state = 'pending') THEN
        RAISE EXCEPTION 'card refund % cannot become % after %', OLD.card_refund_id, NEW.state, OLD.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER card_refunds_move_forward_only BEFORE UPDATE OF state ON card_refunds
    FOR EACH ROW EXECUTE FUNCTION card_refunds_move_forward_only();

-- `cuota rails` counts the charges of the last day. Charges are inserted in this order, so a small index of ranges is enough.
CREATE INDEX charges_created ON charges USING brin (created_at);
