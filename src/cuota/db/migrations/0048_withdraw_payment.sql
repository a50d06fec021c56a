-- A payment that waits for a bank file can be withdrawn, if its payout is held before the file is made.
GRANT DELETE ON bank_files.payments TO cuota_app;

-- A payment that is in a file stays there.
CREATE FUNCTION bank_files.payment_stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF OLD.file_number IS NOT NULL THEN
        RAISE EXCEPTION 'payment % is in bank file %', OLD.payout_id, OLD.file_number USING ERRCODE = 'check_violation';
    END IF;
    RETURN OLD;
END $$;
CREATE TRIGGER payment_stays BEFORE DELETE ON bank_files.payments FOR EACH ROW EXECUTE FUNCTION bank_files.payment_stays();
