-- The sandbox's card processor takes cards on a path of its own, asks for confirmations (3-D Secure), takes its time, renews
-- cards and disputes charges.
ALTER TABLE card_simulator.cards
    DROP CONSTRAINT cards_behaviour_check;          -- widened below: what the previous release writes still passes
ALTER TABLE card_simulator.cards
    ADD CONSTRAINT cards_behaviour_check CHECK (behaviour IN ('pays', 'declined', 'no_funds', 'pays_once', 'disputed',
        'lost_later', 'action', 'action_once', 'action_declined', 'processing', 'renewed'));
ALTER TABLE card_simulator.cards
    ADD COLUMN fingerprint text NOT NULL DEFAULT '';

ALTER TABLE card_simulator.charges
    ADD COLUMN waits text,                          -- for the consumer's confirmation (action), or for the bank (processing)
    ADD COLUMN return_url text,                     -- where the browser goes after the confirmation
    ADD COLUMN merchant_id uuid,
    ADD COLUMN order_id uuid;
ALTER TABLE card_simulator.charges
    ADD CONSTRAINT waits_for_a_reason CHECK (waits IS NULL OR waits IN ('action', 'processing') AND NOT approved);

-- The card network's identifier of the first transaction proves to issuers that later ones were agreed to.
ALTER TABLE charges
    ADD COLUMN network_reference text;

-- Consumers are told when the bank of their card wants them to confirm a payment.
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check;            -- widened below: what the previous release writes still passes
ALTER TABLE messages
    ADD CONSTRAINT messages_kind_check CHECK (kind IN (
        'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
        'plan_paid_off', 'refunded', 'voided', 'expired', 'confirmation_needed'));
