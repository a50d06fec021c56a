-- The rail to a bank that takes files: the payments that were ordered, and the files that were made of them.
CREATE SCHEMA bank_files;

CREATE TABLE bank_files.files (
    number     bigint PRIMARY KEY CHECK (number > 0), -- without gaps
    format     text NOT NULL CHECK (format IN ('nacha', 'pain001')),
    made_at    timestamptz NOT NULL,
    effective  date NOT NULL,                       -- when the bank is to pay
    content    bytea                                -- AES-GCM; null from the claim of the payments until the file is written
);

CREATE TABLE bank_files.payments (
    payout_id    uuid PRIMARY KEY,
    order_number bigint GENERATED ALWAYS AS IDENTITY,
    name         text NOT NULL,
    routing      bytea NOT NULL,                    -- AES-GCM
    account      bytea NOT NULL,                    -- AES-GCM
    amount       bigint NOT NULL CHECK (amount > 0),
    currency     char(3) NOT NULL,
    ordered_at   timestamptz NOT NULL,
    file_number  bigint REFERENCES bank_files.files,
    paid_at      timestamptz,                       -- the bank reported the debit
    returned_at  timestamptz,
    reason       text,
    CONSTRAINT reported_after_the_file CHECK (file_number IS NOT NULL OR (paid_at IS NULL AND returned_at IS NULL)),
    CONSTRAINT returned_for_a_reason CHECK ((returned_at IS NULL) = (reason IS NULL))
);
CREATE UNIQUE INDEX payments_order ON bank_files.payments (order_number);
CREATE INDEX payments_waiting ON bank_files.payments (order_number) WHERE file_number IS NULL;
CREATE INDEX payments_file ON bank_files.payments (file_number);

-- A payment is in one file for ever, and a file that was written never changes, even in a hand-written UPDATE.
CREATE FUNCTION bank_files.stays() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF TG_TABLE_NAME = 'files' THEN
        -- A change of the secret key encrypts the same text anew.
        IF OLD.content IS NOT NULL AND (NEW.content IS NULL OR (NEW.number, NEW.format, NEW.made_at, NEW.effective)
            IS DISTINCT FROM (OLD.number, OLD.format, OLD.made_at, OLD.effective)) THEN
            RAISE EXCEPTION 'bank file % was written and stays as it is', OLD.number USING ERRCODE = 'check_violation';
        END IF;
    ELSIF OLD.file_number IS NOT NULL AND NEW.file_number IS DISTINCT FROM OLD.file_number
        OR (NEW.amount, NEW.currency, NEW.order_number) IS DISTINCT FROM (OLD.amount, OLD.currency, OLD.order_number) THEN
        RAISE EXCEPTION 'payment % is in bank file % and stays there', OLD.payout_id, OLD.file_number
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stays BEFORE UPDATE ON bank_files.files FOR EACH ROW EXECUTE FUNCTION bank_files.stays();
CREATE TRIGGER stays BEFORE UPDATE ON bank_files.payments FOR EACH ROW EXECUTE FUNCTION bank_files.stays();

GRANT USAGE ON SCHEMA bank_files TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON bank_files.files, bank_files.payments TO cuota_app;
