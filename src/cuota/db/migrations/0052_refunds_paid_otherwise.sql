-- A card refund that failed, and that the operator then paid to the consumer in another way. Nothing is owed any more.
ALTER TABLE card_refunds
    DROP CONSTRAINT card_refunds_state_check;       -- widened: what the previous release writes still passes
ALTER TABLE card_refunds ADD CONSTRAINT card_refunds_state_check
    CHECK (state IN ('pending', 'succeeded', 'failed', 'charged_back', 'paid_otherwise'));

-- As in migration 0049, and a refund that failed may be paid in another way.
CREATE OR REPLACE FUNCTION card_refunds_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.state <> OLD.state AND (NEW.state = 'pending' OR OLD.state IN ('charged_back', 'paid_otherwise')
            OR (OLD.state = 'failed' AND NEW.state NOT IN ('charged_back', 'paid_otherwise'))
            OR (NEW.state = 'paid_otherwise' AND OLD.state <> 'failed')) THEN
        RAISE EXCEPTION 'card refund % cannot become % after %', OLD.card_refund_id, NEW.state, OLD.state
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
