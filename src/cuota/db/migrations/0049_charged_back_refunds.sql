-- A card refund that was not sent, or failed, while the card's bank returned the same money by a chargeback. Nothing is owed any more.

ALTER TABLE card_refunds
    DROP CONSTRAINT card_refunds_state_check;       -- widened: what the previous release writes still passes
ALTER TABLE card_refunds
    ADD CONSTRAINT card_refunds_state_check CHECK (state IN ('pending', 'succeeded', 'failed', 'charged_back'));

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
