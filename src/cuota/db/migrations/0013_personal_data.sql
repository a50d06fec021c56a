-- Personal data goes on request (`cuota consumer erase`) and after its term (docs/retention.md). What money rests on
-- stays: ledger, movements, events and decisions hold nobody's name, number or address.

-- When the personal parts of these rows were taken out. The reason for both is docs/decisions/erasure.md.
ALTER TABLE order_details ADD COLUMN erased_at timestamptz;
ALTER TABLE plans ADD COLUMN erased_at timestamptz;

-- Who was erased, and when: the id is a keyed hash of the number, so that nobody can be read out of it.
CREATE TABLE erasures (
    consumer_id uuid NOT NULL,
    erased_at   timestamptz NOT NULL,
    orders      integer NOT NULL CHECK (orders >= 0),
    PRIMARY KEY (consumer_id, erased_at)
);

-- How far the retention job has come with each term: orders are looked at once, in the order of their ids.
CREATE TABLE retention (
    merchant_id uuid NOT NULL,                      -- all zero for what belongs to no merchant
    term        text NOT NULL,
    order_id    uuid NOT NULL,                      -- done up to and with this order
    at          timestamptz NOT NULL,               -- or, where it goes by time, up to and with this
    PRIMARY KEY (merchant_id, term)
);

-- What is past its term is found by its age.
CREATE INDEX messages_old ON messages (merchant_id, settled_at) WHERE settled_at IS NOT NULL;
CREATE INDEX delivery_attempts_old ON delivery_attempts (merchant_id, at);
CREATE INDEX consumers_old ON consumers (updated_at);

-- What an order was created with never changes: the service may have its consumer taken out of it, and nothing else.
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
