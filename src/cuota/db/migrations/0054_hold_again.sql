-- A payout that was released can be held again until a bank is asked about it.

-- As in migration 0038, and a released payout can be held again: it then waits for another release.
CREATE OR REPLACE FUNCTION payouts_are_released_once() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
    again boolean := OLD.released_at IS NOT NULL AND NEW.released_at IS NULL AND NEW.released_arrival IS NULL
        AND NEW.held_at >= OLD.released_at AND OLD.status = 'created' AND NEW.status = 'created' AND NEW.tries = 0;
BEGIN
    IF NOT again AND ((OLD.held_at IS NOT NULL AND NEW.held_at IS DISTINCT FROM OLD.held_at)
        OR (OLD.released_at IS NOT NULL AND NEW.released_at IS DISTINCT FROM OLD.released_at)
        OR (NEW.released_at IS NOT NULL AND NEW.held_at IS NULL)) THEN
        RAISE EXCEPTION 'payout % cannot change how it was held and released', OLD.payout_id USING ERRCODE = 'check_violation';
    END IF;
    IF OLD.released_at IS NULL AND NEW.released_at IS NOT NULL THEN
        PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant AND s.unapproved_since IS NOT NULL;
        IF FOUND THEN
            RAISE EXCEPTION 'payout % cannot be released: its merchant is not approved', OLD.payout_id
                USING ERRCODE = 'check_violation';
        END IF;
    END IF;
    RETURN NEW;
END $$;

-- As in migration 0038, and the beginning of a hold also stops released payouts that were not sent to the bank yet.
CREATE OR REPLACE FUNCTION hold_payouts(merchant uuid, why text, on_hold boolean, happened_at timestamptz) RETURNS integer
LANGUAGE plpgsql AS $$
DECLARE
    stopped integer := 0;
BEGIN
    INSERT INTO settlements (merchant_id) VALUES (merchant) ON CONFLICT DO NOTHING;
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    IF why = 'unapproved' THEN
        UPDATE settlements s SET unapproved_since = CASE WHEN on_hold THEN coalesce(s.unapproved_since, happened_at) END
            WHERE s.merchant_id = merchant;
    ELSE
        UPDATE settlements s SET held_since = CASE WHEN on_hold THEN coalesce(s.held_since, happened_at) END
            WHERE s.merchant_id = merchant;
    END IF;
    IF on_hold THEN
        -- A claim of the same rows waits for none of them (SKIP LOCKED), so their order does not matter.
        UPDATE payouts p SET held_at = greatest(happened_at, p.released_at), released_at = NULL, released_arrival = NULL, try_at = NULL
            WHERE p.merchant_id = merchant AND p.status = 'created' AND p.tries = 0
            AND (p.held_at IS NULL OR p.released_at IS NOT NULL);
        GET DIAGNOSTICS stopped = ROW_COUNT;
    END IF;
    RETURN stopped;
END $$;
