-- Payouts go to the merchant's bank: the sandbox's bank, what the bank said last, and the one function that moves a payout.

-- What the event said about the time at which the account takes effect. A change that is canceled or replaced before that time
-- gets the effective_at 'infinity': it never takes effect. This time stays, because an event's body never changes.
ALTER TABLE bank_accounts ADD COLUMN announced_at timestamptz;
-- Why the last call of the bank failed; null after an answer.
ALTER TABLE payouts ADD COLUMN problem text;

-- While payouts are paused: when the next bank account takes effect, with which they continue.
ALTER TABLE settlements ADD COLUMN resume_at timestamptz;
CREATE INDEX settlements_resume ON settlements (resume_at) WHERE resume_at IS NOT NULL;

-- The sandbox's bank. It stands for a company outside, so it has its own tables and transactions. It stores no account number.
CREATE SCHEMA bank_simulator;

CREATE TABLE bank_simulator.orders (
    payout_id   uuid PRIMARY KEY,                   -- our key: a repeated order pays once
    merchant_id uuid NOT NULL,
    reference   text NOT NULL,                      -- the bank's own
    last4       text NOT NULL,
    behaviour   text NOT NULL CHECK (behaviour IN ('pays', 'returned', 'rejected', 'silent')),
    amount      bigint NOT NULL CHECK (amount > 0),
    currency    char(3) NOT NULL,
    reason      text,                               -- of a rejected or returned order
    created_at  timestamptz NOT NULL,
    pays_at     timestamptz,                        -- null: it never does
    returns_at  timestamptz
);

-- A new event about a payout or a bank account, for the feed and the webhooks. The caller counts them.
CREATE FUNCTION write_payout_event(
    merchant uuid, about uuid, number integer, name text, cents bigint, why text, happened_at timestamptz
) RETURNS void LANGUAGE sql AS $$
    INSERT INTO events (merchant_id, order_id, sequence, type, operation, amount, reference, success, message, created_at)
        VALUES (merchant, about, number, name, NULL, cents, NULL, name <> 'payout.returned', why, happened_at);
    INSERT INTO outbox (merchant_id, order_id, sequence) VALUES (merchant, about, number);
$$;

-- Brings a payout to a status, with its ledger row, its event and, for a return, its settlement line and the pause of payouts.
-- Returns the new status of each step that was made: none if the payout is there already, or if the edge is not allowed.
-- A payout that the bank paid or returned before we knew that it had accepted it passes 'sent' on the way.
CREATE FUNCTION move_payout(
    merchant uuid, payout uuid, target text, happened_at timestamptz, why text, bank_ref text, look_at timestamptz
) RETURNS text[] LANGUAGE plpgsql AS $$
DECLARE
    held payouts%ROWTYPE;
    steps text[];
    step text;
BEGIN
    -- The same order of locks as closing a payout.
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    SELECT * INTO held FROM payouts p WHERE p.merchant_id = merchant AND p.payout_id = payout FOR UPDATE;
    steps := CASE held.status || ' ' || target
        WHEN 'created sent' THEN '{sent}' WHEN 'created paid' THEN '{sent,paid}' WHEN 'created returned' THEN '{sent,returned}'
        WHEN 'created rejected' THEN '{returned}' WHEN 'sent paid' THEN '{paid}' WHEN 'sent returned' THEN '{returned}'
        WHEN 'sent rejected' THEN '{returned}' WHEN 'paid returned' THEN '{returned}' ELSE '{}' END::text[];
    FOREACH step IN ARRAY steps LOOP
        IF step = 'paid' THEN
            PERFORM post_merchant_transfer(merchant, 'payout_paid', payout, 'payouts_in_transit', 'bank_clearing', held.amount,
                held.currency, happened_at, NULL, NULL);
        ELSIF step = 'returned' THEN
            PERFORM post_merchant_transfer(merchant, 'payout_returned', payout,
                CASE held.status WHEN 'paid' THEN 'bank_clearing' ELSE 'payouts_in_transit' END, 'merchant_payable',
                held.amount, held.currency, happened_at, 'payout_returned', held.amount);
            -- If the merchant has another account by now, the next payout goes there and need not wait.
            UPDATE settlements s SET paused_since = coalesce(s.paused_since, happened_at),
                resume_at = (SELECT b.effective_at FROM bank_accounts b WHERE b.merchant_id = merchant
                    AND b.effective_at > happened_at AND b.effective_at < 'infinity')
                WHERE s.merchant_id = merchant
                AND held.account_id = (SELECT b.account_id FROM bank_accounts b WHERE b.merchant_id = merchant
                    AND b.effective_at <= happened_at ORDER BY b.effective_at DESC, b.created_at DESC LIMIT 1);
        END IF;
        UPDATE payouts p SET status = step, events = p.events + 1, tries = 0, problem = NULL, try_at = look_at,
            bank_reference = coalesce(bank_ref, p.bank_reference),
            sent_at = CASE step WHEN 'sent' THEN happened_at ELSE p.sent_at END,
            paid_at = CASE step WHEN 'paid' THEN happened_at ELSE p.paid_at END,
            returned_at = CASE step WHEN 'returned' THEN happened_at ELSE p.returned_at END,
            return_reason = CASE step WHEN 'returned' THEN why ELSE p.return_reason END
            WHERE p.merchant_id = merchant AND p.payout_id = payout RETURNING * INTO held;
        PERFORM write_payout_event(merchant, payout, held.events, 'payout.' || step, held.amount,
            CASE step WHEN 'returned' THEN why END, happened_at);
    END LOOP;
    RETURN steps;
END $$;

-- Adds a bank account, or a change that takes effect later. A change that has not taken effect yet is replaced. Returns when
-- the account takes effect. `wait` is ignored for the first account. `told` is false for the sandbox's test account.
CREATE FUNCTION add_bank_account(
    merchant uuid, account uuid, sealed_routing bytea, sealed_account bytea, digits text, happened_at timestamptz, wait interval,
    told boolean
) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    takes_effect timestamptz := happened_at;
BEGIN
    INSERT INTO settlements (merchant_id) VALUES (merchant) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    PERFORM 1 FROM bank_accounts b WHERE b.merchant_id = merchant AND b.effective_at <= happened_at;
    IF FOUND THEN
        IF NOT told THEN
            RETURN NULL;
        END IF;
        takes_effect := happened_at + wait;
        PERFORM cancel_bank_change(merchant, happened_at);
    END IF;
    INSERT INTO bank_accounts (merchant_id, account_id, routing, account, last4, effective_at, announced_at, created_at)
        VALUES (merchant, account, sealed_routing, sealed_account, digits, takes_effect, takes_effect, happened_at);
    UPDATE settlements s SET resume_at = takes_effect WHERE s.merchant_id = merchant AND s.paused_since IS NOT NULL;
    IF told THEN
        PERFORM write_payout_event(merchant, account, 1, 'bank_account.changed', 0, NULL, happened_at);
    END IF;
    RETURN takes_effect;
END $$;

-- Cancels the change that has not taken effect yet. Returns the last four digits of its account, or null if there is none.
CREATE FUNCTION cancel_bank_change(merchant uuid, happened_at timestamptz) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    held bank_accounts%ROWTYPE;
BEGIN
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    UPDATE bank_accounts b SET effective_at = 'infinity' WHERE b.merchant_id = merchant AND b.effective_at > happened_at
        AND b.effective_at < 'infinity' RETURNING * INTO held;
    IF NOT FOUND THEN
        RETURN NULL;
    END IF;
    UPDATE settlements s SET resume_at = NULL WHERE s.merchant_id = merchant;
    PERFORM write_payout_event(merchant, held.account_id, 2, 'bank_account.changed', 0, 'canceled', happened_at);
    RETURN held.last4;
END $$;

-- Payouts continue when another account has taken effect since the one came back.
CREATE FUNCTION resume_payouts(merchant uuid, happened_at timestamptz) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE settlements s SET paused_since = NULL, resume_at = NULL WHERE s.merchant_id = merchant AND s.resume_at <= happened_at;
    RETURN FOUND;
END $$;

GRANT USAGE ON SCHEMA bank_simulator TO cuota_app;
GRANT SELECT, INSERT ON bank_simulator.orders TO cuota_app;
