-- An installment that stays unpaid for too long is written off: its amount moves from what the consumer owes to losses
-- (docs/ledger.md). The installment keeps its amount, and the consumer can still pay it.

ALTER TABLE installments
    ADD COLUMN written_off_at timestamptz;          -- when it was written off; kept if the consumer pays later
-- NOT VALID: no older row is written off, so the table need not be read.
ALTER TABLE installments ADD CONSTRAINT written_off_is_not_charged
    CHECK (written_off_at IS NULL OR (charge_at IS NULL AND remind_at IS NULL AND failures > 0)) NOT VALID;
-- What a background job looks for. Few installments are overdue, so the index is small.
CREATE INDEX installments_overdue ON installments (due_on, merchant_id)
    WHERE failures > 0 AND charge_id IS NULL AND written_off_at IS NULL;

-- Checked at every commit that changes a written-off installment: the order's losses are what its written-off installments
-- still owe. This also refuses a save by the previous release, which does not know write-offs. That release answers with an
-- error, and nothing has changed.
CREATE FUNCTION write_off_law() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    lost bigint;
    unpaid bigint;
BEGIN
    SELECT coalesce(sum(CASE WHEN t.debit = 'losses' THEN t.amount ELSE -t.amount END), 0) INTO lost FROM transfers t
        WHERE t.merchant_id = NEW.merchant_id AND t.order_id = NEW.order_id
        AND t.posting IN ('write_off', 'write_off_reversed', 'recovery');
    SELECT coalesce(sum(i.amount + i.fee), 0) INTO unpaid FROM installments i
        WHERE i.merchant_id = NEW.merchant_id AND i.order_id = NEW.order_id AND i.written_off_at IS NOT NULL
        AND i.charge_id IS NULL;
    IF lost <> unpaid THEN
        RAISE EXCEPTION 'order % has losses of %, its written-off installments owe %', NEW.order_id, lost, unpaid
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER write_off_law AFTER UPDATE ON installments
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW
    WHEN (NEW.written_off_at IS NOT NULL OR OLD.written_off_at IS NOT NULL) EXECUTE FUNCTION write_off_law();
