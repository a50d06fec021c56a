-- A payout follows the rules of the bank rail that sent it, also if CUOTA_BANK_RAIL names another one by now.

-- The rail that was, or may have been, asked to send the payout: set before the first call, and null if no rail was asked, or an earlier
-- release asked it. Then the rail of the settings counts.
ALTER TABLE payouts ADD COLUMN bank_rail text CONSTRAINT payouts_bank_rail CHECK (bank_rail ~ '^[a-z0-9_]{2,32}$');
ALTER TABLE payouts ADD COLUMN confirm_by date;     -- the last day on which this rail confirms the payment; null: not known

-- As in migration 0025, and a payout that was sent keeps its rail.
CREATE OR REPLACE FUNCTION payouts_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.status <> OLD.status AND (OLD.status, NEW.status) NOT IN (('created', 'sent'), ('created', 'returned'),
        ('sent', 'paid'), ('sent', 'returned'), ('paid', 'returned')) THEN
        RAISE EXCEPTION 'payout % cannot become % after %', OLD.payout_id, NEW.status, OLD.status
            USING ERRCODE = 'check_violation';
    END IF;
    IF (NEW.number, NEW.amount, NEW.currency, NEW.first_line, NEW.last_line, NEW.account_id, NEW.cutoff)
        IS DISTINCT FROM (OLD.number, OLD.amount, OLD.currency, OLD.first_line, OLD.last_line, OLD.account_id, OLD.cutoff)
    THEN
        RAISE EXCEPTION 'payout % cannot change what it pays', OLD.payout_id USING ERRCODE = 'check_violation';
    END IF;
    IF OLD.status <> 'created' AND OLD.bank_rail IS NOT NULL AND NEW.bank_rail IS DISTINCT FROM OLD.bank_rail THEN
        RAISE EXCEPTION 'payout % was sent by the bank rail %', OLD.payout_id, OLD.bank_rail USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
