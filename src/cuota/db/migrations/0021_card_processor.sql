-- The sandbox's card processor takes cards on a path of its own, asks for confirmations (3-D Secure), takes its time, renews
-- cards and disputes charges.
ALTER TABLE card_simulator.cards
    DROP CONSTRAINT cards_behaviour_check,
    ADD CONSTRAINT cards_behaviour_check CHECK (behaviour IN ('pays', 'declined', 'no_funds', 'pays_once', 'disputed',
        'lost_later', 'action', 'action_once', 'action_declined', 'processing', 'renewed')),
    ADD COLUMN fingerprint text NOT NULL DEFAULT '',
    ADD COLUMN merchant_id uuid,                    -- of the order that the card was entered for
    ADD COLUMN order_id uuid;
GRANT UPDATE ON card_simulator.cards TO cuota_app;

ALTER TABLE card_simulator.charges
    ADD COLUMN waits text CHECK (waits IN ('action', 'processing')), -- for the consumer's confirmation, or for the bank
    ADD COLUMN return_url text,                     -- where the browser goes after the confirmation
    ADD COLUMN merchant_id uuid,
    ADD COLUMN order_id uuid,
    ADD CONSTRAINT waiting_is_not_approved CHECK (waits IS NULL OR NOT approved);

-- Consumers are told when the bank of their card wants them to confirm a payment.
ALTER TABLE messages
    DROP CONSTRAINT messages_kind_check,            -- widened: what the previous release writes still passes
    ADD CONSTRAINT messages_kind_check CHECK (kind IN (
        'plan_started', 'reminder', 'payment_received', 'payment_failed', 'card_needed', 'card_changed', 'declined',
        'plan_paid_off', 'refunded', 'voided', 'expired', 'confirmation_needed'));
