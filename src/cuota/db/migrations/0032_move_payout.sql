-- As in migration 0027, for Citus: it sends CASE step WHEN 'sent' to a worker as a comparison of a text with a boolean, which
-- fails. So no payout was ever sent on a cluster.
CREATE OR REPLACE FUNCTION move_payout(
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
                CASE WHEN held.status = 'paid' THEN 'bank_clearing' ELSE 'payouts_in_transit' END, 'merchant_payable',
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
            sent_at = CASE WHEN step = 'sent' THEN happened_at ELSE p.sent_at END,
            paid_at = CASE WHEN step = 'paid' THEN happened_at ELSE p.paid_at END,
            returned_at = CASE WHEN step = 'returned' THEN happened_at ELSE p.returned_at END,
            return_reason = CASE WHEN step = 'returned' THEN why ELSE p.return_reason END
            WHERE p.merchant_id = merchant AND p.payout_id = payout RETURNING * INTO held;
        PERFORM write_payout_event(merchant, payout, held.events, 'payout.' || step, held.amount,
            CASE WHEN step = 'returned' THEN why END, happened_at);
    END LOOP;
    RETURN steps;
END $$;
