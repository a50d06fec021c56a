-- As in migration 0039, but a plan is summed up only if the amount, the fee or the number of an installment changes. Most updates change
-- none of them: a reminder, a charge, a payment. The plan was summed up after each of these, nine times in the life of an order. A new plan
-- was summed up once for each installment, and is now summed up once.
CREATE OR REPLACE FUNCTION plan_law() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := coalesce(NEW.merchant_id, OLD.merchant_id);  -- a deleted row has no NEW
    planned_order uuid := coalesce(NEW.order_id, OLD.order_id);
    owed bigint;
    fees bigint;
    planned bigint;
    planned_fees bigint;
    installments_there integer;
    last_number integer;
    agreed_number integer;
BEGIN
    -- On a cluster, the name of a shard ends with its number. The rows of orders have no number.
    IF TG_OP = 'UPDATE' AND TG_TABLE_NAME LIKE 'installments%' THEN
        IF (NEW.merchant_id, NEW.order_id, NEW.number, NEW.amount, NEW.fee)
                = (OLD.merchant_id, OLD.order_id, OLD.number, OLD.amount, OLD.fee) THEN
            RETURN NULL;
        END IF;
    ELSIF TG_OP = 'INSERT' THEN
        -- Of several new installments, the one with the highest number sums up the plan. A next number that was there before this
        -- transaction belongs to a complete plan; then this number was there too, and was deleted, which also sums up the plan.
        PERFORM FROM installments i WHERE i.merchant_id = merchant AND i.order_id = planned_order AND i.number = NEW.number + 1;
        IF FOUND THEN
            RETURN NULL;
        END IF;
    END IF;
    SELECT o.amount - o.voided - o.refunded, o.fee - o.fee_returned INTO owed, fees
        FROM orders o WHERE o.merchant_id = merchant AND o.order_id = planned_order AND o.status = 'Approved';
    IF NOT FOUND THEN
        RAISE EXCEPTION 'order % has a plan and is not approved', planned_order USING ERRCODE = 'check_violation';
    END IF;
    SELECT coalesce(sum(i.amount), 0), coalesce(sum(i.fee), 0), count(*), max(i.number)
        INTO planned, planned_fees, installments_there, last_number
        FROM installments i WHERE i.merchant_id = merchant AND i.order_id = planned_order;
    SELECT c.payments INTO agreed_number FROM plan_changes c WHERE c.merchant_id = merchant AND c.order_id = planned_order
        ORDER BY c.number DESC LIMIT 1;
    agreed_number := coalesce(agreed_number, 4);
    IF planned <> owed OR planned_fees <> fees OR installments_there <> agreed_number OR last_number <> agreed_number THEN
        RAISE EXCEPTION 'plan of order % has % installments and sums to % and % in fees, not % and % and %',
            planned_order, installments_there, planned, planned_fees, agreed_number, owed, fees USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
