-- Settlement: lines are written from a merchant's feed, and a batch of lines is closed at the merchant's cutoff.
--
-- Each function locks the merchant's row in settlements and does its work in one transaction. A worker that is killed leaves
-- nothing half done. Several workers may call them at the same time: the one that finds the row locked returns at once.

-- Writes the lines of the next events of the feed, at most `most` events. Returns how many events were read. The feed is read only
-- up to the first movement at or after the next cutoff: its line belongs to the next batch, so it waits until this batch is closed.
CREATE FUNCTION settle_movements(merchant uuid, most integer) RETURNS integer LANGUAGE plpgsql AS $$
DECLARE
    held settlements%ROWTYPE;
    published bigint;
    later bigint;
    added bigint;
    added_net bigint;
    added_moved bigint;
BEGIN
    SELECT * INTO held FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 0;
    END IF;
    SELECT least(f.last_position, held.position + most) INTO published FROM feeds f WHERE f.merchant_id = merchant;
    SELECT min(f.position) INTO later FROM feed f JOIN events e ON e.merchant_id = merchant AND e.order_id = f.order_id
            AND e.sequence = f.sequence
        WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
            AND e.type IN ('capture.completed', 'refund.completed')
            AND e.created_at >= coalesce(held.close_at, '-infinity');
    published := coalesce(later - 1, published, held.position);
    IF published = held.position THEN
        RETURN 0;
    END IF;
    INSERT INTO settlement_lines (merchant_id, number, type, cause, order_id, reference, gross, fee, net, currency, at,
        sequence)
        SELECT merchant, held.lines + row_number() OVER (ORDER BY n.position, n.first),
            CASE n.posting WHEN 'merchant_fee' THEN 'fee' WHEN 'merchant_fee_returned' THEN 'fee_returned'
                ELSE n.posting END,
            n.cause, n.order_id, n.reference, CASE WHEN n.is_fee THEN 0 ELSE n.net END,
            CASE WHEN n.is_fee THEN n.net ELSE 0 END, n.net, n.currency, n.at, n.position
        FROM (
            SELECT f.position, f.order_id, m.reference, t.posting, t.cause, t.currency, min(t.number) AS first,
                min(t.created_at) AS at, t.posting IN ('merchant_fee', 'merchant_fee_returned') AS is_fee,
                sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END)::bigint AS net
            FROM feed f
                JOIN events e ON e.merchant_id = merchant AND e.order_id = f.order_id AND e.sequence = f.sequence
                JOIN movements m ON m.merchant_id = merchant AND m.order_id = f.order_id
                    AND m.kind = split_part(e.type, '.', 1) AND m.reference = e.reference
                JOIN transfers t ON t.merchant_id = merchant AND t.order_id = f.order_id AND t.cause = m.movement_id
            WHERE f.merchant_id = merchant AND f.position > held.position AND f.position <= published
                AND e.type IN ('capture.completed', 'refund.completed')
                AND (t.debit = 'merchant_payable' OR t.credit = 'merchant_payable')
            GROUP BY f.position, f.order_id, m.reference, t.posting, t.cause, t.currency
        ) n;
    SELECT count(*), coalesce(sum(l.net), 0),
            coalesce(sum(l.net) FILTER (WHERE l.type IN ('capture', 'refund')), 0)
        INTO added, added_net, added_moved
        FROM settlement_lines l WHERE l.merchant_id = merchant AND l.number > held.lines;
    UPDATE settlements s SET position = published, lines = held.lines + added, open_net = held.open_net + added_net,
        open_moved = held.open_moved + added_moved WHERE s.merchant_id = merchant;
    RETURN published - held.position;
END $$;

-- Closes the open lines at a cutoff into one payout, or leaves them open. Returns what it did:
-- 'paid'; 'carried' (nothing to pay, or the merchant cannot be paid now); 'passed' (the cutoff is not one at which this merchant
-- is paid); 'behind' (a movement from before the cutoff has no line yet; nothing was done); 'busy' (another worker is at it).
CREATE FUNCTION close_batch(
    merchant uuid, cutoff_at timestamptz, next_cutoff_at timestamptz, pays boolean, closing_at timestamptz,
    least_amount bigint, reserve_points integer, reserve_until timestamptz, new_payout uuid, new_reserve uuid,
    arrives date
) RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    held settlements%ROWTYPE;
    r record;
    next_movement timestamptz;
    paid_account uuid;
    unit text;
    kept bigint;
    released bigint;
    amount_due bigint;
    result text := 'carried';
    written bigint;
    still_reserved boolean;
BEGIN
    SELECT * INTO held FROM settlements s WHERE s.merchant_id = merchant AND s.close_at = cutoff_at
        FOR UPDATE SKIP LOCKED;
    IF NOT FOUND THEN
        RETURN 'busy';
    END IF;
    PERFORM 1 FROM outbox o JOIN events e ON e.merchant_id = merchant AND e.order_id = o.order_id
            AND e.sequence = o.sequence
        WHERE o.merchant_id = merchant AND e.created_at < cutoff_at
            AND e.type IN ('capture.completed', 'refund.completed');
    IF FOUND THEN
        RETURN 'behind';
    END IF;
    SELECT e.created_at INTO next_movement FROM feed f JOIN events e ON e.merchant_id = merchant
            AND e.order_id = f.order_id AND e.sequence = f.sequence
        WHERE f.merchant_id = merchant AND f.position > held.position
            AND e.type IN ('capture.completed', 'refund.completed') ORDER BY f.position LIMIT 1;
    IF next_movement < cutoff_at THEN
        RETURN 'behind';
    END IF;
    IF NOT pays THEN
        result := 'passed';
    ELSIF held.paused_since IS NULL THEN
        SELECT b.account_id INTO paid_account FROM bank_accounts b
            WHERE b.merchant_id = merchant AND b.effective_at <= closing_at
            ORDER BY b.effective_at DESC, b.created_at DESC, b.account_id DESC LIMIT 1;
    END IF;

    IF paid_account IS NOT NULL THEN
        SELECT coalesce(sum(v.amount), 0) INTO released FROM reserves v
            WHERE v.merchant_id = merchant AND v.released_at IS NULL AND v.release_at <= cutoff_at;
        -- Rounded half up, like every share of an amount (core/money.py).
        kept := (greatest(held.open_moved, 0) * reserve_points + 5000) / 10000;
        amount_due := held.open_net + released - kept;
        SELECT l.currency INTO unit FROM settlement_lines l
            WHERE l.merchant_id = merchant ORDER BY l.number DESC LIMIT 1;
        IF amount_due > 0 AND amount_due >= least_amount THEN
            result := 'paid';
        END IF;
        -- A reserve that leaves nothing to pay is held all the same. Otherwise the time until its release would never begin.
        IF result = 'paid' OR (amount_due <= 0 AND amount_due + kept > 0) THEN
            FOR r IN SELECT v.reserve_id, v.amount FROM reserves v
                WHERE v.merchant_id = merchant AND v.released_at IS NULL AND v.release_at <= cutoff_at
                ORDER BY v.release_at, v.reserve_id
            LOOP
                PERFORM post_merchant_transfer(merchant, 'reserve_released', r.reserve_id, 'merchant_reserve',
                    'merchant_payable', r.amount, unit, closing_at, 'reserve_released', r.amount);
                UPDATE reserves v SET released_at = closing_at
                    WHERE v.merchant_id = merchant AND v.reserve_id = r.reserve_id;
            END LOOP;
            IF kept > 0 THEN
                INSERT INTO reserves (merchant_id, reserve_id, amount, held_at, release_at)
                    VALUES (merchant, new_reserve, kept, closing_at, reserve_until);
                PERFORM post_merchant_transfer(merchant, 'reserve_held', new_reserve, 'merchant_payable',
                    'merchant_reserve', kept, unit, closing_at, 'reserve_held', -kept);
            END IF;
            held.open_net := amount_due;
            held.open_moved := 0;
            held.reserved := held.reserved + kept - released;
        END IF;
    END IF;

    IF result = 'paid' THEN
        PERFORM post_merchant_transfer(merchant, 'payout', new_payout, 'merchant_payable', 'payouts_in_transit',
            amount_due, unit, closing_at, NULL, NULL);
        SELECT s.lines INTO written FROM settlements s WHERE s.merchant_id = merchant;
        INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id,
            cutoff, closed_at, arrival_date, events, try_at)
            VALUES (merchant, new_payout, held.payouts + 1, 'created', amount_due, unit, held.closed + 1, written,
                paid_account, cutoff_at, closing_at, arrives, 1, closing_at);
        INSERT INTO events (merchant_id, order_id, sequence, type, amount, success, created_at)
            VALUES (merchant, new_payout, 1, 'payout.created', amount_due, true, closing_at);
        INSERT INTO outbox (merchant_id, order_id, sequence) VALUES (merchant, new_payout, 1);
        held.closed := written;
        held.payouts := held.payouts + 1;
        held.open_net := 0;
    END IF;
    SELECT EXISTS (SELECT FROM reserves v WHERE v.merchant_id = merchant AND v.released_at IS NULL) INTO still_reserved;
    -- A merchant with nothing open and nothing reserved has no cutoff until its next movement.
    UPDATE settlements s SET closed = held.closed, payouts = held.payouts, open_net = held.open_net,
        open_moved = held.open_moved, reserved = held.reserved,
        carried = CASE WHEN result = 'passed' THEN held.carried ELSE held.open_net END,
        carried_line = CASE WHEN result = 'passed' THEN held.carried_line ELSE s.lines END,
        closed_until = cutoff_at,
        close_at = CASE WHEN still_reserved OR s.lines > held.closed THEN next_cutoff_at END
        WHERE s.merchant_id = merchant;
    RETURN result;
END $$;

-- A payout pays exactly the sum of its lines, and begins where the payout before it has ended. So no line is in two payouts.
CREATE FUNCTION payouts_pay_their_lines() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
    summed bigint;
    counted bigint;
    ended bigint;
BEGIN
    SELECT coalesce(sum(l.net), 0), count(*) INTO summed, counted FROM settlement_lines l
        WHERE l.merchant_id = merchant AND l.number >= NEW.first_line AND l.number <= NEW.last_line
            AND l.currency = NEW.currency;
    IF summed <> NEW.amount OR counted <> NEW.last_line - NEW.first_line + 1 THEN
        RAISE EXCEPTION 'payout % pays % for lines % to %, which are % lines in % that sum to %', NEW.payout_id, NEW.amount,
            NEW.first_line, NEW.last_line, counted, NEW.currency, summed USING ERRCODE = 'check_violation';
    END IF;
    SELECT max(p.last_line) INTO ended FROM payouts p WHERE p.merchant_id = merchant AND p.number = NEW.number - 1;
    IF NEW.first_line <> coalesce(ended, 0) + 1 OR (ended IS NULL AND NEW.number > 1) THEN
        RAISE EXCEPTION 'payout % begins with line %, but payout % of the merchant ended with line %', NEW.payout_id,
            NEW.first_line, NEW.number - 1, coalesce(ended, 0) USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER payouts_pay_their_lines AFTER INSERT ON payouts
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION payouts_pay_their_lines();
