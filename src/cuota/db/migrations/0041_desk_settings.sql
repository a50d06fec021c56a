-- The settings that a merchant's own people change in the dashboard, and the notices that they get by e-mail.

-- `minimum` and `maximum` are the operator's limits. A limit that the merchant sets counts only if it lies within them.
ALTER TABLE merchants
    ADD COLUMN own_minimum   bigint CONSTRAINT merchants_own_minimum CHECK (own_minimum > 0),
    ADD COLUMN own_maximum   bigint CONSTRAINT merchants_own_maximum CHECK (own_maximum > 0),
    ADD COLUMN display_name  text CONSTRAINT merchants_display_name CHECK (length(display_name) BETWEEN 1 AND 100),
    ADD COLUMN support_email text CONSTRAINT merchants_support_email CHECK (length(support_email) BETWEEN 3 AND 254),
    ADD COLUMN support_url   text CONSTRAINT merchants_support_url CHECK (length(support_url) BETWEEN 8 AND 2048),
    ADD COLUMN notify_email  text CONSTRAINT merchants_notify_email CHECK (length(notify_email) BETWEEN 3 AND 254),
    ADD COLUMN logo          text CONSTRAINT merchants_logo CHECK (logo ~ '^[0-9a-f]{64}$');
ALTER TABLE merchants ADD CONSTRAINT merchants_own_range CHECK (own_minimum <= own_maximum);
-- Consumers must not confuse two merchants.
CREATE UNIQUE INDEX merchants_display_name_key ON merchants (lower(display_name));

-- The logo that the checkout shows. The logo's name is the hash of its content.
CREATE TABLE merchant_logos (
    merchant_id uuid NOT NULL,
    digest      text NOT NULL CONSTRAINT merchant_logos_digest CHECK (digest ~ '^[0-9a-f]{64}$'),
    media_type  text NOT NULL CONSTRAINT merchant_logos_media_type CHECK (media_type IN ('image/png', 'image/jpeg', 'image/webp')),
    content     bytea NOT NULL CONSTRAINT merchant_logos_content CHECK (length(content) BETWEEN 1 AND 102400),
    CONSTRAINT merchant_logos_pkey PRIMARY KEY (merchant_id, digest)
);

-- Mails to the merchant's own people. The address is stored, because it may be changed before the mail is sent.
CREATE TABLE desk_notices (
    merchant_id uuid NOT NULL,
    notice_id   uuid NOT NULL,
    kind        text NOT NULL CONSTRAINT desk_notices_kind CHECK (kind IN ('bank-changed', 'bank-withdrawn', 'notify-changed')),
    email       text NOT NULL,
    facts       json NOT NULL,
    created_at  timestamptz NOT NULL,
    mail_at     timestamptz,                        -- when the mail is sent next; null: the mail was sent, or is no longer retried
    tries       smallint NOT NULL DEFAULT 0,
    CONSTRAINT desk_notices_pkey PRIMARY KEY (merchant_id, notice_id)
);
CREATE INDEX desk_notices_mail ON desk_notices (mail_at, merchant_id) WHERE mail_at IS NOT NULL;
CREATE INDEX desk_notices_old ON desk_notices (created_at);

-- Queues a mail to each owner and to the merchant's address for notices. A thief may remove the owners first, so owners who
-- were removed within the last week also get the mail. `real_now` is the time of the real clock.
CREATE FUNCTION tell_owners(merchant uuid, what text, said json, real_now timestamptz) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    address text;
BEGIN
    FOR address IN SELECT p.email FROM desk_people p WHERE p.merchant_id = merchant AND p.role = 'owner'
            AND (p.removed_at IS NULL OR p.removed_at > real_now - interval '7 days')
        UNION SELECT m.notify_email FROM merchants m WHERE m.merchant_id = merchant AND m.notify_email IS NOT NULL
    LOOP
        INSERT INTO desk_notices (merchant_id, notice_id, kind, email, facts, created_at, mail_at)
            VALUES (merchant, gen_random_uuid(), what, address, said, real_now, real_now);
    END LOOP;
END $$;

-- Does the same as add_bank_account, and notifies the owners. `who` and `place` are texts that name the person and the IP
-- address.
CREATE FUNCTION change_bank_account(
    merchant uuid, account uuid, sealed_routing bytea, sealed_account bytea, digits text, happened_at timestamptz, wait interval,
    who text, place text, real_now timestamptz
) RETURNS timestamptz LANGUAGE plpgsql AS $$
DECLARE
    before text;
    takes_effect timestamptz;
BEGIN
    SELECT b.last4 INTO before FROM bank_accounts b WHERE b.merchant_id = merchant AND b.effective_at <= happened_at
        ORDER BY b.effective_at DESC, b.created_at DESC LIMIT 1;
    takes_effect := add_bank_account(merchant, account, sealed_routing, sealed_account, digits, happened_at, wait, true);
    PERFORM tell_owners(merchant, 'bank-changed', json_build_object('last4', digits, 'before', before, 'effectiveAt', takes_effect,
        'who', who, 'place', place), real_now);
    RETURN takes_effect;
END $$;

-- Does the same as cancel_bank_change, and notifies the owners.
CREATE FUNCTION withdraw_bank_change(merchant uuid, happened_at timestamptz, who text, place text, real_now timestamptz)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    withdrawn text := cancel_bank_change(merchant, happened_at);
    stays text;
BEGIN
    IF withdrawn IS NOT NULL THEN
        SELECT b.last4 INTO stays FROM bank_accounts b WHERE b.merchant_id = merchant AND b.effective_at <= happened_at
            ORDER BY b.effective_at DESC, b.created_at DESC LIMIT 1;
        PERFORM tell_owners(merchant, 'bank-withdrawn', json_build_object('last4', withdrawn, 'before', stays,
            'who', who, 'place', place), real_now);
    END IF;
    RETURN withdrawn;
END $$;

GRANT SELECT, INSERT, DELETE ON merchant_logos TO cuota_app;
GRANT SELECT, INSERT, UPDATE, DELETE ON desk_notices TO cuota_app;
