-- No payout goes to a bank account that the operator has rejected, or has replaced by another one before it was ever accepted.

-- Whether the operator has decided against this account of a merchant whose approval was asked for: the account was rejected, or a later
-- account was decided about while this one never was accepted. An account about which nothing was decided yet is not refused.
CREATE FUNCTION bank_account_is_refused(merchant uuid, paid_account uuid) RETURNS boolean LANGUAGE plpgsql STABLE AS $$
DECLARE
    accepted_last boolean;
    entered_at timestamptz;
BEGIN
    PERFORM 1 FROM merchants m WHERE m.merchant_id = merchant AND m.onboarding = 'none';
    IF FOUND THEN
        RETURN false;
    END IF;
    SELECT d.accepted INTO accepted_last FROM onboarding_decisions d
        WHERE d.merchant_id = merchant AND d.item = 'bank' AND d.about = paid_account::text ORDER BY d.decision_id DESC LIMIT 1;
    IF accepted_last IS NOT NULL THEN
        RETURN NOT accepted_last;
    END IF;
    SELECT b.created_at INTO entered_at FROM bank_accounts b WHERE b.merchant_id = merchant AND b.account_id = paid_account;
    PERFORM 1 FROM onboarding_decisions d JOIN bank_accounts b ON b.merchant_id = merchant AND b.account_id::text = d.about
        WHERE d.merchant_id = merchant AND d.item = 'bank' AND b.created_at > entered_at;
    RETURN FOUND;
END $$;

-- As in migration 0038, and a payout to a refused account waits, too.
CREATE OR REPLACE FUNCTION payouts_of_held_merchants_wait() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
BEGIN
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant AND (s.unapproved_since IS NOT NULL OR s.held_since IS NOT NULL);
    IF FOUND OR bank_account_is_refused(merchant, NEW.account_id) THEN
        NEW.held_at := NEW.closed_at;
        NEW.try_at := NULL;
    END IF;
    RETURN NEW;
END $$;

-- What a release of a payout to this account does now: 'released'; 'given_back' (the merchant has another account in force: what a payout
-- pays never changes, so the amount goes back to the balance, and the next payout pays it); 'refused' (the operator has decided against
-- the account, and no other one is in force).
CREATE FUNCTION release_would(merchant uuid, paid_account uuid, happened_at timestamptz) RETURNS text LANGUAGE plpgsql STABLE AS $$
DECLARE
    in_force uuid;
BEGIN
    SELECT b.account_id INTO in_force FROM bank_accounts b WHERE b.merchant_id = merchant AND b.effective_at <= happened_at
        ORDER BY b.effective_at DESC, b.created_at DESC, b.account_id DESC LIMIT 1;
    IF in_force <> paid_account THEN
        RETURN 'given_back';
    END IF;
    IF bank_account_is_refused(merchant, paid_account) THEN
        RETURN 'refused';
    END IF;
    RETURN 'released';
END $$;

-- As in migration 0038, but only to an account that is in force and not refused. Also returns what release_would returns.
CREATE OR REPLACE FUNCTION release_payout(merchant uuid, payout uuid, happened_at timestamptz, arrives date) RETURNS text
LANGUAGE plpgsql AS $$
DECLARE
    paid_account uuid;
    result text;
BEGIN
    -- The same order of locks as closing a payout.
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant AND s.unapproved_since IS NOT NULL;
    IF FOUND THEN
        RETURN 'unapproved';
    END IF;
    SELECT p.account_id INTO paid_account FROM payouts p WHERE p.merchant_id = merchant AND p.payout_id = payout
        AND p.held_at IS NOT NULL AND p.released_at IS NULL FOR UPDATE;
    IF NOT FOUND THEN
        RETURN 'not_held';
    END IF;
    result := release_would(merchant, paid_account, happened_at);
    IF result = 'refused' THEN
        RETURN result;
    END IF;
    UPDATE payouts p SET released_at = happened_at, released_arrival = arrives,
        try_at = CASE WHEN result = 'released' THEN happened_at END
        WHERE p.merchant_id = merchant AND p.payout_id = payout;
    IF result = 'given_back' THEN
        PERFORM move_payout(merchant, payout, 'rejected', happened_at, 'the bank account changed before the release', NULL, NULL);
    END IF;
    RETURN result;
END $$;
