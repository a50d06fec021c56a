-- A card refund that was not sent, or failed, while the card's bank returned the same money by a chargeback. Nothing is owed any more.

ALTER TABLE card_refunds
    DROP CONSTRAINT card_refunds_state_check;       -- widened: what the previous release writes still passes
ALTER TABLE card_refunds
    ADD CONSTRAINT card_refunds_state_check CHECK (state IN ('pending', 'succeeded', 'failed', 'charged_back'));

-- Until this time no rail was asked for the refund, if `try_at` is still the same time: a claim of the previous release moves only
-- `try_at`, so a refund that it may have sent never counts as unsent.
ALTER TABLE card_refunds ADD COLUMN unasked_until timestamptz;

-- As in migration 0022, and a refund that failed may be found to be charged back.
CREATE OR REPLACE FUNCTION card_refunds_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND (NEW.state = 'pending' OR OLD.state = 'charged_back'
            OR (OLD.state = 'failed' AND NEW.state <> 'charged_back')) THEN
        RAISE EXCEPTION 'card refund % cannot become % after %', OLD.card_refund_id, NEW.state, OLD.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
