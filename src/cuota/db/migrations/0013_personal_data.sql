-- Personal data is deleted on request (`cuota consumer erase`) and after its retention period (docs/retention.md). The
-- ledger, movements, events and decisions stay: they contain no name, number or address.

-- When the personal parts of these rows were deleted. The reason for both is docs/decisions/erasure.md.
ALTER TABLE order_details ADD COLUMN erased_at timestamptz;
ALTER TABLE plans ADD COLUMN erased_at timestamptz;

-- Erased consumers, and when. The id is a keyed hash of the number, so it does not reveal the person.
CREATE TABLE erasures (
    consumer_id uuid NOT NULL,
    erased_at   timestamptz NOT NULL,
    orders      integer NOT NULL CHECK (orders >= 0),
    PRIMARY KEY (consumer_id, erased_at)
);

-- The progress of the retention job for each period. It visits orders once, in the order of their ids.
CREATE TABLE retention (
    merchant_id uuid NOT NULL,                      -- all zero for data that belongs to no merchant
    term        text NOT NULL,
    order_id    uuid NOT NULL,                      -- this order and all before it are done
    at          timestamptz NOT NULL,               -- or, for periods by time, everything up to this time is done
    PRIMARY KEY (merchant_id, term)
);

-- Finds data that is older than its retention period.
CREATE INDEX messages_old ON messages (merchant_id, settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX delivery_attempts_old ON delivery_attempts (merchant_id, at);
CREATE INDEX consumers_old ON consumers (updated_at);

-- The created order never changes. The service may only remove the consumer's data from it.
-- The other parts stay as they are, character by character.
CREATE FUNCTION blank_orders(merchant uuid, orders uuid[], at timestamptz) RETURNS integer
LANGUAGE plpgsql SECURITY DEFINER SET search_path = public AS $$
DECLARE
    blanked integer;
BEGIN
    UPDATE order_details d SET erased_at = at, document = (
        SELECT ('{' || string_agg(to_json(part.key)::text || ':' || CASE
            WHEN part.key IN ('consumer', 'billing', 'shipping', 'description') THEN 'null'
            WHEN part.key = 'metadata' THEN '{}'
            ELSE part.value::text END, ',' ORDER BY part.place) || '}')::json
        FROM json_each(d.document) WITH ORDINALITY AS part (key, value, place))
    WHERE d.merchant_id = merchant AND d.order_id = ANY (orders) AND d.erased_at IS NULL;
    GET DIAGNOSTICS blanked = ROW_COUNT;
    RETURN blanked;
END $$;
REVOKE ALL ON FUNCTION blank_orders FROM PUBLIC;

GRANT EXECUTE ON FUNCTION blank_orders TO cuota_app;
GRANT UPDATE (additional) ON sdk_checkouts TO cuota_app;
GRANT UPDATE (answer), DELETE ON delivery_attempts TO cuota_app;
GRANT DELETE ON messages, consumers TO cuota_app;
GRANT SELECT, INSERT ON erasures TO cuota_app;
GRANT SELECT, INSERT, UPDATE ON retention TO cuota_app;
