-- Token-signing keys on the curve P-256 (ES256); signing_keys holds the RSA keys (RS256). The tables are separate because the
-- previous release fails on any key in signing_keys that is not RSA. It does not read this table.
CREATE TABLE signing_keys_p256 (
    key_id      text PRIMARY KEY,
    private_key bytea NOT NULL,                     -- AES-GCM under the secret key
    active_at   timestamptz NOT NULL,
    retired_at  timestamptz
);
GRANT SELECT, INSERT, UPDATE ON signing_keys_p256 TO cuota_app;

-- Counts one code for each of these hashes, or for none: if a counter is full, the error CU429 undoes the whole statement. Its
-- detail has the hashes whose counter is full. Every call locks the rows in the same order, so that two calls never deadlock.
CREATE FUNCTION count_codes(hashes bytea[], limits integer[], at timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    counted bytea[];
BEGIN
    WITH counts AS (
        INSERT INTO codes_sent AS c (phone_hash, hour, sent, most)
            SELECT q.value_hash, date_trunc('hour', at), 1, q.most
                FROM unnest(hashes, limits) AS q (value_hash, most) ORDER BY 1
            ON CONFLICT (phone_hash, hour) DO UPDATE SET sent = c.sent + 1, most = excluded.most
                WHERE c.sent < excluded.most
            RETURNING phone_hash
    )
    SELECT array_agg(phone_hash) INTO counted FROM counts;
    IF coalesce(cardinality(counted), 0) < cardinality(hashes) THEN
        RAISE EXCEPTION 'a counter is full' USING ERRCODE = 'CU429', DETAIL = (
            SELECT string_agg(encode(q.value_hash, 'hex'), ' ') FROM unnest(hashes) AS q (value_hash)
                WHERE q.value_hash <> ALL (coalesce(counted, '{}'))
        );
    END IF;
END $$;
GRANT EXECUTE ON FUNCTION count_codes TO cuota_app;

-- Stores what a consumer typed, for this checkout and the next one. False, without a change, if the session no longer exists
-- because the consumer was erased: an erasure deletes the session, then the consumer, and waits here for the session's row.
CREATE FUNCTION save_details(
    merchant uuid, checkout uuid, browser bytea, details json, consumer uuid, number text, at timestamptz
) RETURNS boolean LANGUAGE plpgsql AS $$
BEGIN
    UPDATE checkout_sessions s SET profile = details
        WHERE s.merchant_id = merchant AND s.order_id = checkout AND s.session_hash = browser;
    IF NOT FOUND THEN
        RETURN false;
    END IF;
    INSERT INTO consumers (consumer_id, phone, profile, created_at, updated_at)
        VALUES (consumer, number, details, at, at)
        ON CONFLICT (consumer_id) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at;
    RETURN true;
END $$;
GRANT EXECUTE ON FUNCTION save_details TO cuota_app;
