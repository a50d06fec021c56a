-- Merchants are paid: terms and fees, settlement lines, payouts, reserves and bank accounts (docs/payouts.md).

-- The versions of a merchant's terms. The version with the latest valid_from that has begun is in force. Without a row, there
-- are no fees.
CREATE TABLE merchant_terms (
    merchant_id  uuid NOT NULL,
    version      integer NOT NULL CHECK (version > 0),
    valid_from   timestamptz NOT NULL,
    percent      integer NOT NULL CHECK (percent BETWEEN 0 AND 10000),      -- basis points of each capture
    fixed        bigint NOT NULL CHECK (fixed BETWEEN 0 AND 100000),        -- cents for each capture
    refund_fee   text NOT NULL CHECK (refund_fee IN (
        'kept',                                     -- the fee of a refunded capture is kept
        'pro_rata',                                 -- the percentage goes back in proportion, the fixed part is kept
        'returned'                                  -- both go back in proportion
    )),
    payout       text NOT NULL CHECK (payout IN ('daily', 'weekly', 'monthly')),
    minimum      bigint NOT NULL CHECK (minimum >= 0),                      -- cents; a smaller payout waits for the next day
    reserve      integer NOT NULL CHECK (reserve BETWEEN 0 AND 10000),      -- basis points of the captures, less refunds
    reserve_days integer NOT NULL CHECK (reserve_days BETWEEN 0 AND 365),
    time_zone    text NOT NULL,
    cutoff       time NOT NULL,                     -- in that time zone
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, version)
);

-- A refund returns at most the fees that the order's captures paid.
CREATE FUNCTION merchant_fee_returned_within_fee() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    paid bigint;
    returned bigint;
BEGIN
    SELECT coalesce(sum(t.amount) FILTER (WHERE t.posting = 'merchant_fee'), 0),
        coalesce(sum(t.amount) FILTER (WHERE t.posting = 'merchant_fee_returned'), 0) INTO paid, returned
        FROM transfers t WHERE t.merchant_id = NEW.merchant_id AND t.order_id = NEW.order_id;
    IF returned > paid THEN
        RAISE EXCEPTION 'order % returns % of the merchant''s fees of %', NEW.order_id, returned, paid
            USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER merchant_fee_returned_within_fee AFTER INSERT ON transfers FOR EACH ROW
    WHEN (NEW.posting = 'merchant_fee_returned') EXECUTE FUNCTION merchant_fee_returned_within_fee();

-- Ledger rows of a merchant that belong to no order: payouts, reserves, adjustments. Numbered from 1 without gaps.
CREATE TABLE merchant_transfers (
    merchant_id uuid NOT NULL,
    number      integer NOT NULL CHECK (number > 0),
    posting     text NOT NULL,
    cause       uuid NOT NULL,                      -- the payout, reserve or adjustment that caused it
    debit       text NOT NULL,
    credit      text NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    currency    char(3) NOT NULL,
    created_at  timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, number),
    CONSTRAINT two_sides CHECK (debit <> credit),
    CONSTRAINT known_accounts CHECK (
        debit IN ('merchant_payable', 'merchant_reserve', 'payouts_in_transit', 'bank_clearing', 'merchant_fees', 'losses')
        AND credit IN ('merchant_payable', 'merchant_reserve', 'payouts_in_transit', 'bank_clearing', 'merchant_fees',
            'losses'))
);
CREATE UNIQUE INDEX merchant_transfers_cause ON merchant_transfers (merchant_id, cause, posting);

-- One row for each merchant. Its lock serializes everything that adds lines or closes a payout.
CREATE TABLE settlements (
    merchant_id   uuid PRIMARY KEY,
    position      bigint NOT NULL DEFAULT 0,        -- the last event of the feed whose money has lines
    lines         bigint NOT NULL DEFAULT 0,        -- lines written so far: their numbers have no gaps
    closed        bigint NOT NULL DEFAULT 0,        -- the last line that is in a payout
    transfers     integer NOT NULL DEFAULT 0,       -- rows of merchant_transfers written so far
    payouts       integer NOT NULL DEFAULT 0,       -- payouts created so far
    open_net      bigint NOT NULL DEFAULT 0,        -- the sum of the lines after `closed`, in cents
    open_moved    bigint NOT NULL DEFAULT 0,        -- the part of open_net that is captures less refunds: the base of a reserve
    carried       bigint NOT NULL DEFAULT 0,        -- the part of open_net that the last closing left open, up to this line
    carried_line  bigint NOT NULL DEFAULT 0,
    reserved      bigint NOT NULL DEFAULT 0 CHECK (reserved >= 0),
    close_at      timestamptz,                      -- the next daily cutoff; null while nothing is open and nothing is reserved
    closed_until  timestamptz,                      -- the last cutoff that is done; at first the time at which the row was made
    paused_since  timestamptz,                      -- a payout came back: nothing is paid until the bank details change
    CONSTRAINT closed_lines_exist CHECK (closed BETWEEN 0 AND lines)
);
CREATE INDEX settlements_close ON settlements (close_at);

-- What each movement means for the merchant's money. A line is never changed. A payout takes a range of lines.
CREATE TABLE settlement_lines (
    merchant_id uuid NOT NULL,
    number      bigint NOT NULL CHECK (number > 0),
    type        text NOT NULL CHECK (type IN ('capture', 'refund', 'fee', 'fee_returned', 'dispute_withheld',
        'dispute_released', 'dispute_lost', 'reserve_held', 'reserve_released', 'adjustment', 'payout_returned')),
    cause       uuid NOT NULL,                      -- the cause of its rows in the ledger
    order_id    uuid,
    reference   text,                               -- the movement's own reference
    gross       bigint NOT NULL,                    -- cents; negative if it reduces the payout
    fee         bigint NOT NULL,                    -- cents; negative if it reduces the payout
    net         bigint NOT NULL,
    currency    char(3) NOT NULL,
    at          timestamptz NOT NULL,
    sequence    bigint,                             -- the position in the merchant's feed of the event that reported it
    PRIMARY KEY (merchant_id, number),
    CONSTRAINT net_is_the_sum CHECK (net = gross + fee)
);
CREATE UNIQUE INDEX settlement_lines_once ON settlement_lines (merchant_id, cause, type);

CREATE TABLE bank_accounts (
    merchant_id  uuid NOT NULL,
    account_id   uuid NOT NULL,
    routing      bytea NOT NULL,                    -- AES-GCM
    account      bytea NOT NULL,                    -- AES-GCM
    last4        text NOT NULL CHECK (last4 ~ '^[0-9]{4}$'),
    effective_at timestamptz NOT NULL,              -- payouts that are created from then on use it
    created_at   timestamptz NOT NULL,
    PRIMARY KEY (merchant_id, account_id)
);

-- A batch that closed with something to pay: the lines from first_line to last_line.
CREATE TABLE payouts (
    merchant_id   uuid NOT NULL,
    payout_id     uuid NOT NULL,
    number        integer NOT NULL CHECK (number > 0),
    status        text NOT NULL CHECK (status IN (
        'created',                                  -- payout.created: the batch closed, the bank was not asked yet
        'sent',                                     -- payout.sent: the bank has accepted the order
        'paid',                                     -- payout.paid: the money has arrived
        'returned'                                  -- payout.returned: the bank sent the money back, or refused the order
    )),
    amount        bigint NOT NULL CHECK (amount > 0),
    currency      char(3) NOT NULL,
    first_line    bigint NOT NULL CHECK (first_line > 0),
    last_line     bigint NOT NULL,
    account_id    uuid NOT NULL,
    cutoff        timestamptz NOT NULL,
    closed_at     timestamptz NOT NULL,
    arrival_date  date NOT NULL,                    -- expected; by the bank's calendar
    events        integer NOT NULL DEFAULT 0,       -- events written so far: their sequence has no gaps
    sent_at       timestamptz,
    paid_at       timestamptz,
    returned_at   timestamptz,
    return_reason text,
    bank_reference text,                            -- the bank's own reference
    try_at        timestamptz,                      -- when the bank is asked next; null once nothing is expected
    tries         smallint NOT NULL DEFAULT 0,
    PRIMARY KEY (merchant_id, payout_id),
    CONSTRAINT whole_range CHECK (last_line >= first_line)
);
CREATE UNIQUE INDEX payouts_number ON payouts (merchant_id, number);
CREATE UNIQUE INDEX payouts_lines ON payouts (merchant_id, first_line);
CREATE INDEX payouts_due ON payouts (try_at, merchant_id) WHERE try_at IS NOT NULL;

-- Captured money that is kept back for a while against refunds and disputes.
CREATE TABLE reserves (
    merchant_id uuid NOT NULL,
    reserve_id  uuid NOT NULL,
    amount      bigint NOT NULL CHECK (amount > 0),
    held_at     timestamptz NOT NULL,
    release_at  timestamptz NOT NULL,
    released_at timestamptz,
    PRIMARY KEY (merchant_id, reserve_id)
);
CREATE INDEX reserves_due ON reserves (merchant_id, release_at) WHERE released_at IS NULL;

-- A payout only moves forward, and what it pays never changes, even in a hand-written UPDATE.
CREATE FUNCTION payouts_move_forward_only() RETURNS trigger LANGUAGE plpgsql AS $$
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
    RETURN NEW;
END $$;
CREATE TRIGGER payouts_move_forward_only BEFORE UPDATE ON payouts
    FOR EACH ROW EXECUTE FUNCTION payouts_move_forward_only();

-- Posts a movement of a merchant's money that belongs to no order, and adds a settlement line of `net` cents if `line_type` is
-- given. Returns false if this posting of the cause was done before; then nothing is written.
CREATE FUNCTION post_merchant_transfer(
    merchant uuid, posting_name text, caused_by uuid, debit_account text, credit_account text, cents bigint, unit text,
    happened_at timestamptz, line_type text, line_net bigint, line_reference text DEFAULT NULL
) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    held settlements%ROWTYPE;
BEGIN
    INSERT INTO settlements (merchant_id) VALUES (merchant) ON CONFLICT DO NOTHING;
    SELECT * INTO held FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    PERFORM 1 FROM merchant_transfers t WHERE t.merchant_id = merchant AND t.cause = caused_by AND t.posting = posting_name;
    IF FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO merchant_transfers (merchant_id, number, posting, cause, debit, credit, amount, currency, created_at)
        VALUES (merchant, held.transfers + 1, posting_name, caused_by, debit_account, credit_account, cents, unit, happened_at);
    IF line_type IS NULL THEN
        UPDATE settlements s SET transfers = held.transfers + 1 WHERE s.merchant_id = merchant;
    ELSE
        INSERT INTO settlement_lines (merchant_id, number, type, cause, reference, gross, fee, net, currency, at)
            VALUES (merchant, held.lines + 1, line_type, caused_by, line_reference, line_net, 0, line_net, unit,
                happened_at);
        UPDATE settlements s SET transfers = held.transfers + 1, lines = held.lines + 1,
            open_net = held.open_net + line_net WHERE s.merchant_id = merchant;
    END IF;
    RETURN true;
END $$;

CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON merchant_terms
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON merchant_transfers
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON settlement_lines
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

GRANT SELECT, INSERT ON merchant_terms, merchant_transfers, settlement_lines TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON settlements, bank_accounts, payouts, reserves TO cuota_app;
