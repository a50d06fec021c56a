-- The operator's people may sign in at a company's OpenID Connect provider, and the dashboard shows rates and latencies.

-- Who is who at the provider. The subject never changes there and belongs to nobody else; an e-mail address may do both.
CREATE TABLE operator_identities (
    issuer    text NOT NULL CONSTRAINT operator_identities_issuer CHECK (length(issuer) BETWEEN 1 AND 500),
    subject   text NOT NULL CONSTRAINT operator_identities_subject CHECK (length(subject) BETWEEN 1 AND 255),
    person_id uuid NOT NULL CONSTRAINT operator_identities_person_id REFERENCES operator_people,
    linked_at timestamptz NOT NULL,
    CONSTRAINT operator_identities_pkey PRIMARY KEY (issuer, subject),
    -- A person has one account at a provider. Another account that has the person's e-mail address is somebody else's.
    CONSTRAINT operator_identities_person UNIQUE (person_id, issuer)
);

-- Sign-ins that a browser began at the provider. Each belongs to one browser and works once. The values that are sent to the
-- provider are keyed hashes of the state, so nothing in this table finishes a sign-in.
CREATE TABLE operator_provider_visits (
    browser_hash bytea NOT NULL,                    -- of the secret in the browser's cookie
    state_hash   bytea NOT NULL,
    issuer       text NOT NULL,
    session_hash bytea,                             -- the session that asks for a fresh second factor; null: a sign-in
    address      text NOT NULL,                     -- the IP address, for the limit; empty if it is not known
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT operator_provider_visits_pkey PRIMARY KEY (browser_hash, state_hash)
);
CREATE INDEX operator_provider_visits_address ON operator_provider_visits (address, created_at) WHERE address <> '';
CREATE INDEX operator_provider_visits_old ON operator_provider_visits (ends_at);

-- A link that `cuota desk link --operator --emergency` made. It works also where mailed links do not.
ALTER TABLE operator_links ADD COLUMN emergency boolean NOT NULL DEFAULT false;

-- What each process answered, written by the process itself once a minute and kept for a day. A process that answered nothing writes a
-- row all the same, so that everybody sees that the process is there.
CREATE TABLE process_minutes (
    at         timestamptz NOT NULL,                -- of the real clock
    process_id uuid NOT NULL,                       -- a new one for each start
    machine    text NOT NULL,
    pid        integer NOT NULL,
    version    text NOT NULL,                       -- of the program
    started_at timestamptz NOT NULL,
    span       double precision NOT NULL CONSTRAINT process_minutes_span CHECK (span > 0),  -- seconds before `at` that are counted
    memory     bigint,                              -- resident bytes; null if the system does not say
    figures    json NOT NULL,                       -- {"groups": {group of routes: [answers, server errors, [answers by duration]]}, "refused": n}
    CONSTRAINT process_minutes_pkey PRIMARY KEY (at, process_id)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON operator_identities, operator_provider_visits TO cuota_app;
GRANT SELECT, INSERT, DELETE ON process_minutes TO cuota_app;
