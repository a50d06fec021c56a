-- Passkeys of the people of both dashboards (WebAuthn), and the challenges that browsers answer with them.
-- The two dashboards share no table, so a passkey of a merchant's person is never one of the operator's.

CREATE TABLE desk_passkeys (
    merchant_id   uuid NOT NULL,
    passkey_id    uuid NOT NULL,                    -- names the passkey in addresses
    person_id     uuid NOT NULL,
    credential_id bytea NOT NULL CONSTRAINT desk_passkeys_credential_length CHECK (length(credential_id) BETWEEN 1 AND 1023),
    public_key    bytea NOT NULL,                   -- COSE
    sign_count    bigint NOT NULL CONSTRAINT desk_passkeys_sign_count CHECK (sign_count >= 0),
    name          text NOT NULL CONSTRAINT desk_passkeys_name CHECK (length(name) BETWEEN 1 AND 100),
    added_at      timestamptz NOT NULL,
    used_at       timestamptz,
    CONSTRAINT desk_passkeys_pkey PRIMARY KEY (merchant_id, passkey_id),
    CONSTRAINT desk_passkeys_credential UNIQUE (merchant_id, credential_id)
);
CREATE INDEX desk_passkeys_person ON desk_passkeys (merchant_id, person_id);

-- A browser that signs in names no merchant, so this table has no merchant. Each challenge works once.
CREATE TABLE desk_challenges (
    browser_hash bytea NOT NULL,                    -- of the secret in the browser's cookie
    challenge    bytea NOT NULL,
    purpose      text NOT NULL CONSTRAINT desk_challenges_purpose CHECK (purpose IN ('sign-in', 'step-up', 'add')),
    address      text NOT NULL,                     -- the IP address, for the limit; empty if it is not known
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT desk_challenges_pkey PRIMARY KEY (browser_hash, challenge)
);
CREATE INDEX desk_challenges_address ON desk_challenges (address, created_at) WHERE address <> '';
CREATE INDEX desk_challenges_old ON desk_challenges (ends_at);

CREATE TABLE operator_passkeys (
    passkey_id    uuid NOT NULL,
    person_id     uuid NOT NULL CONSTRAINT operator_passkeys_person_id REFERENCES operator_people,
    credential_id bytea NOT NULL CONSTRAINT operator_passkeys_credential_length CHECK (length(credential_id) BETWEEN 1 AND 1023),
    public_key    bytea NOT NULL,                   -- COSE
    sign_count    bigint NOT NULL CONSTRAINT operator_passkeys_sign_count CHECK (sign_count >= 0),
    name          text NOT NULL CONSTRAINT operator_passkeys_name CHECK (length(name) BETWEEN 1 AND 100),
    added_at      timestamptz NOT NULL,
    used_at       timestamptz,
    CONSTRAINT operator_passkeys_pkey PRIMARY KEY (passkey_id),
    CONSTRAINT operator_passkeys_credential UNIQUE (credential_id)
);
CREATE INDEX operator_passkeys_person ON operator_passkeys (person_id);

CREATE TABLE operator_challenges (
    browser_hash bytea NOT NULL,
    challenge    bytea NOT NULL,
    purpose      text NOT NULL CONSTRAINT operator_challenges_purpose CHECK (purpose IN ('sign-in', 'step-up', 'add')),
    address      text NOT NULL,
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT operator_challenges_pkey PRIMARY KEY (browser_hash, challenge)
);
CREATE INDEX operator_challenges_address ON operator_challenges (address, created_at) WHERE address <> '';
CREATE INDEX operator_challenges_old ON operator_challenges (ends_at);

GRANT SELECT, INSERT, UPDATE, DELETE ON desk_passkeys, desk_challenges, operator_passkeys, operator_challenges TO cuota_app;
