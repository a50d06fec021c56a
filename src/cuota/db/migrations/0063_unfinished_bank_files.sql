-- A payment may leave a file that was never written: no bank has seen it. So a hold stops the payment of a command that was killed, and
-- a payment whose account cannot be decrypted does not stop the other payments of its file.
CREATE OR REPLACE FUNCTION bank_files.stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'files' THEN
        -- A change of the secret key encrypts the same text anew.
        IF OLD.content IS NOT NULL AND (NEW.content IS NULL OR (NEW.number, NEW.format, NEW.made_at, NEW.effective)
            IS DISTINCT FROM (OLD.number, OLD.format, OLD.made_at, OLD.effective)) THEN
            RAISE EXCEPTION 'bank file % was written and stays as it is', OLD.number USING ERRCODE = 'check_violation';
        END IF;
    ELSE
        IF (NEW.amount, NEW.currency, NEW.order_number) IS DISTINCT FROM (OLD.amount, OLD.currency, OLD.order_number) THEN
            RAISE EXCEPTION 'payment % stays as it was ordered', OLD.payout_id USING ERRCODE = 'check_violation';
        END IF;
        IF OLD.file_number IS NOT NULL AND NEW.file_number IS DISTINCT FROM OLD.file_number AND (NEW.file_number IS NOT NULL
            OR EXISTS (SELECT FROM bank_files.files WHERE number = OLD.file_number AND content IS NOT NULL)) THEN
            RAISE EXCEPTION 'payment % is in bank file % and stays there', OLD.payout_id, OLD.file_number
                USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    RETURN NEW;
END $$;
