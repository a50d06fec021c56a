-- Onboarding: the operator's knowledge and decisions about a merchant; screening of names; suspension; held payouts.

-- 'none': no approval is required. So every existing merchant keeps its permissions.
ALTER TABLE merchants
    ADD COLUMN onboarding text NOT NULL DEFAULT 'none'
        CONSTRAINT merchants_onboarding CHECK (onboarding IN ('none', 'open', 'approved'));
ALTER TABLE merchants ADD COLUMN suspended_at timestamptz;          -- from this time on, no new orders
-- For the operator's list. Two names may not differ only in their case (merchants_name), so a name is also a position in the
-- list.
CREATE INDEX merchants_newest ON merchants (created_at DESC, merchant_id DESC);
CREATE INDEX merchants_open ON merchants (lower(name)) WHERE onboarding = 'open';
CREATE INDEX merchants_suspended ON merchants (lower(name)) WHERE suspended_at IS NOT NULL;
CREATE INDEX credentials_revoked ON credentials (merchant_id) WHERE revoked_at IS NOT NULL;
-- Commands create merchants in the same way as the service, whatever the settings of the shell are.
ALTER TABLE last_served ADD COLUMN onboarding text;

-- One row for each merchant whose onboarding has begun. The lock of the row serializes all changes of the checklist.
CREATE TABLE merchant_onboarding (
    merchant_id      uuid NOT NULL,
    business         bytea,                         -- AES-GCM, of JSON
    business_version integer NOT NULL DEFAULT 0 CONSTRAINT merchant_onboarding_version CHECK (business_version >= 0),
    to_check_since   timestamptz,                   -- since when an item waits for the operator
    names_hash       bytea,                         -- the hash of all names that were screened last
    rail             text,                          -- the rail that screened the names
    screened_at      timestamptz,
    screen_at        timestamptz,                   -- the time of the next screening
    screen_tries     smallint NOT NULL DEFAULT 0,
    screen_problem   text,                          -- why the last attempt failed; null after an answer
    CONSTRAINT merchant_onboarding_pkey PRIMARY KEY (merchant_id),
    CONSTRAINT screened_has_a_time CHECK ((names_hash IS NULL) = (screened_at IS NULL))
);
CREATE INDEX merchant_onboarding_to_check ON merchant_onboarding (to_check_since) WHERE to_check_since IS NOT NULL;
CREATE INDEX merchant_onboarding_screen ON merchant_onboarding (screen_at) WHERE screen_at IS NOT NULL;

-- The people who own at least 25 percent of the business, or control it.
CREATE TABLE merchant_owners (
    merchant_id uuid NOT NULL,
    owner_id    uuid NOT NULL,
    version     integer NOT NULL CONSTRAINT merchant_owners_version CHECK (version > 0),
    details     bytea NOT NULL,                     -- AES-GCM, of JSON: name and date of birth
    share       integer NOT NULL CONSTRAINT merchant_owners_part CHECK (share BETWEEN 0 AND 10000),        -- basis points
    controlling boolean NOT NULL,
    created_at  timestamptz NOT NULL,
    removed_at  timestamptz,                        -- since when the person is no longer an owner; kept so that the operator can name past owners
    CONSTRAINT merchant_owners_pkey PRIMARY KEY (merchant_id, owner_id),
    CONSTRAINT owns_or_controls CHECK (controlling OR share >= 2500)
);
CREATE FUNCTION merchant_owners_own_at_most_all() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
    owned bigint;
BEGIN
    SELECT sum(o.share) INTO owned FROM merchant_owners o WHERE o.merchant_id = merchant AND o.removed_at IS NULL;
    IF owned > 10000 THEN
        RAISE EXCEPTION 'the owners of merchant % own % basis points', merchant, owned USING ERRCODE = 'check_violation';
    END IF;
    RETURN NULL;
END $$;
CREATE TRIGGER merchant_owners_own_at_most_all AFTER INSERT OR UPDATE ON merchant_owners
    FOR EACH ROW EXECUTE FUNCTION merchant_owners_own_at_most_all();

CREATE TABLE merchant_documents (
    merchant_id uuid NOT NULL,
    document_id uuid NOT NULL,
    kind        text NOT NULL CONSTRAINT merchant_documents_kind CHECK (kind IN ('registration', 'tax', 'identity', 'address', 'other')),
    name        bytea NOT NULL,                     -- AES-GCM
    media_type  text NOT NULL CONSTRAINT merchant_documents_type CHECK (media_type IN ('application/pdf', 'image/png',
        'image/jpeg', 'image/webp', 'text/plain')),
    size        integer NOT NULL CONSTRAINT merchant_documents_size CHECK (size BETWEEN 1 AND 5242880),     -- bytes, before encryption
    content     bytea NOT NULL,                     -- AES-GCM, of the content in base64
    sender      text NOT NULL,                      -- the name and address of the sender at that time
    sent_at     timestamptz NOT NULL,
    CONSTRAINT merchant_documents_pkey PRIMARY KEY (merchant_id, document_id)
);

-- The operator's decisions about items. The last row of an item counts as long as `about` names the current data.
CREATE TABLE onboarding_decisions (
    merchant_id uuid NOT NULL,
    decision_id uuid NOT NULL,
    item        text NOT NULL CONSTRAINT onboarding_decisions_item CHECK (item IN ('business', 'owners', 'bank', 'documents')),
    accepted    boolean NOT NULL,
    about       text NOT NULL,
    reason      text NOT NULL CONSTRAINT onboarding_decisions_reason CHECK (length(reason) BETWEEN 1 AND 500),
    decided_by  uuid,                               -- null: a command
    decider     text NOT NULL,                      -- the name and address of the person at that time
    decided_at  timestamptz NOT NULL,
    CONSTRAINT onboarding_decisions_pkey PRIMARY KEY (merchant_id, decision_id)
);
CREATE TRIGGER append_only BEFORE UPDATE OR DELETE OR TRUNCATE ON onboarding_decisions
    FOR EACH STATEMENT EXECUTE FUNCTION append_only();

-- Possible matches of a merchant's names with lists of sanctioned people and companies. One row for each pair of name and
-- entry.
CREATE TABLE screening_findings (
    merchant_id  uuid NOT NULL,
    finding_id   uuid NOT NULL,
    subject_hash bytea NOT NULL,                    -- the hash of the name that was screened
    kind         text NOT NULL CONSTRAINT screening_findings_kind CHECK (kind IN ('legal_name', 'trading_name', 'owner')),
    owner_id     uuid,
    list_name    text NOT NULL,
    entry        text NOT NULL,
    listed_name  text NOT NULL,
    detail       text NOT NULL,
    score        smallint NOT NULL CONSTRAINT screening_findings_score CHECK (score BETWEEN 0 AND 100),
    found_at     timestamptz NOT NULL,
    state        text NOT NULL DEFAULT 'open' CONSTRAINT screening_findings_state CHECK (state IN ('open', 'cleared', 'confirmed')),
    reason       text CONSTRAINT screening_findings_reason CHECK (length(reason) BETWEEN 1 AND 500),
    decided_by   uuid,
    decider      text,
    decided_at   timestamptz,
    CONSTRAINT screening_findings_pkey PRIMARY KEY (merchant_id, finding_id),
    CONSTRAINT screening_findings_once UNIQUE (merchant_id, subject_hash, list_name, entry),
    CONSTRAINT decided_has_a_reason CHECK ((state = 'open') = (decided_at IS NULL) AND (state = 'open') = (reason IS NULL))
);

-- Payouts of a merchant that is not approved, or whose payouts the operator holds, are closed as usual and then wait.
ALTER TABLE settlements ADD COLUMN unapproved_since timestamptz;
ALTER TABLE settlements ADD COLUMN held_since timestamptz;
ALTER TABLE payouts ADD COLUMN held_at timestamptz;
ALTER TABLE payouts ADD COLUMN released_at timestamptz;
ALTER TABLE payouts ADD COLUMN released_arrival date;               -- the expected day, counted from the release
-- No existing row is held, so nothing needs to be checked.
ALTER TABLE payouts ADD CONSTRAINT a_held_payout_waits
    CHECK (held_at IS NULL OR released_at IS NOT NULL OR (status = 'created' AND try_at IS NULL)) NOT VALID;
CREATE INDEX payouts_held ON payouts (held_at, payout_id) WHERE held_at IS NOT NULL AND released_at IS NULL;

-- Closing a payout locks the merchant's row in settlements. The beginning of a hold locks the same row.
CREATE FUNCTION payouts_of_held_merchants_wait() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
BEGIN
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant AND (s.unapproved_since IS NOT NULL OR s.held_since IS NOT NULL);
    IF FOUND THEN
        NEW.held_at := NEW.closed_at;
        NEW.try_at := NULL;
    END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER payouts_of_held_merchants_wait BEFORE INSERT ON payouts
    FOR EACH ROW EXECUTE FUNCTION payouts_of_held_merchants_wait();

-- A payout is held until it is released, which happens once, and never before the merchant is approved.
CREATE FUNCTION payouts_are_released_once() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
    merchant uuid := NEW.merchant_id;
BEGIN
    IF (OLD.held_at IS NOT NULL AND NEW.held_at IS DISTINCT FROM OLD.held_at)
        OR (OLD.released_at IS NOT NULL AND NEW.released_at IS DISTINCT FROM OLD.released_at)
        OR (NEW.released_at IS NOT NULL AND NEW.held_at IS NULL) THEN
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
CREATE TRIGGER payouts_are_released_once BEFORE UPDATE ON payouts
    FOR EACH ROW EXECUTE FUNCTION payouts_are_released_once();

-- Begins or ends a hold: 'unapproved', or 'operator'. The beginning of a hold also stops payouts that were not sent to the bank
-- yet. Returns the number of stopped payouts. A payout that is already held stays held when a hold ends: a person releases each
-- one.
CREATE FUNCTION hold_payouts(merchant uuid, why text, on_hold boolean, happened_at timestamptz) RETURNS integer
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
        UPDATE payouts p SET held_at = happened_at, try_at = NULL
            WHERE p.merchant_id = merchant AND p.status = 'created' AND p.tries = 0 AND p.held_at IS NULL;
        GET DIAGNOSTICS stopped = ROW_COUNT;
    END IF;
    RETURN stopped;
END $$;

-- Releases a held payout. Returns 'released'; 'unapproved' (the payout's merchant is not approved); or 'not_held' (the payout
-- was already released, or was never held).
CREATE FUNCTION release_payout(merchant uuid, payout uuid, happened_at timestamptz, arrives date) RETURNS text
LANGUAGE plpgsql AS $$
BEGIN
    -- The same order of locks as closing a payout.
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant FOR UPDATE;
    PERFORM 1 FROM settlements s WHERE s.merchant_id = merchant AND s.unapproved_since IS NOT NULL;
    IF FOUND THEN
        RETURN 'unapproved';
    END IF;
    UPDATE payouts p SET released_at = happened_at, released_arrival = arrives, try_at = happened_at
        WHERE p.merchant_id = merchant AND p.payout_id = payout AND p.held_at IS NOT NULL AND p.released_at IS NULL;
    IF NOT FOUND THEN
        RETURN 'not_held';
    END IF;
    RETURN 'released';
END $$;

GRANT SELECT, INSERT, UPDATE ON merchant_onboarding, merchant_owners, screening_findings TO cuota_app;
-- UPDATE of documents: when the secret key changes, the documents are encrypted again.
GRANT SELECT, INSERT, UPDATE, DELETE ON merchant_documents TO cuota_app;
GRANT SELECT, INSERT ON onboarding_decisions TO cuota_app;
