-- The operator's people may sign in at a company's OpenID Connect provider. The dashboard shows rates and latencies.

-- The accounts of people at the provider. The subject of an account never changes and is never reused. An e-mail address may
-- change or be reused.
CREATE TABLE operator_identities (
    issuer    text NOT NULL CONSTRAINT operator_identities_issuer CHECK (length(issuer) BETWEEN 1 AND 500),
    subject   text NOT NULL CONSTRAINT operator_identities_subject CHECK (length(subject) BETWEEN 1 AND 255),
    person_id uuid NOT NULL CONSTRAINT operator_identities_person_id REFERENCES operator_people,
    linked_at timestamptz NOT NULL,
    CONSTRAINT operator_identities_pkey PRIMARY KEY (issuer, subject),
    -- A person has one account at a provider. Another account with the person's e-mail address belongs to another person.
    CONSTRAINT operator_identities_person UNIQUE (person_id, issuer)
);

-- Sign-ins that a browser began at the provider. Each belongs to one browser and works once. The provider gets only keyed
-- hashes of the state, so the contents of this table are not enough to finish a sign-in.
CREATE TABLE operator_provider_visits (
    browser_hash bytea NOT NULL,                    -- of the secret in the browser's cookie
    state_hash   bytea NOT NULL,
    issuer       text NOT NULL,
    session_hash bytea,                             -- the session that asks for a fresh second factor; null for a sign-in
    address      text NOT NULL,                     -- the IP address, for the limit; empty if it is not known
    created_at   timestamptz NOT NULL,
    ends_at      timestamptz NOT NULL,
    used_at      timestamptz,
    CONSTRAINT operator_provider_visits_pkey PRIMARY KEY (browser_hash, state_hash)
);
CREATE INDEX operator_provider_visits_address ON operator_provider_visits (address, created_at) WHERE address <> '';
CREATE INDEX operator_provider_visits_old ON operator_provider_visits (ends_at);

-- A link that `cuota desk link --operator --emergency` made. The link also works where mailed links do not work.
ALTER TABLE operator_links ADD COLUMN emergency boolean NOT NULL DEFAULT false;

-- The requests that each process answered. The process writes a row once a minute, and the row is kept for a day. A process
-- that answered no request also writes a row, so the page shows that the process runs.
CREATE TABLE process_minutes (
    at         timestamptz NOT NULL,                -- of the real clock
    process_id uuid NOT NULL,                       -- each start has a new id
    machine    text NOT NULL,
    pid        integer NOT NULL,
    version    text NOT NULL,                       -- of the program
    started_at timestamptz NOT NULL,
    span       double precision NOT NULL CONSTRAINT process_minutes_span CHECK (span > 0),  -- the seconds before `at` in which the requests were counted
    memory     bigint,                              -- resident bytes; null if the system does not tell the number
    figures    json NOT NULL,                       -- {"groups": {group of routes: [answers, server errors, [answers by duration]]}, "refused": n}
    CONSTRAINT process_minutes_pkey PRIMARY KEY (at, process_id)
);

GRANT SELECT, INSERT, UPDATE, DELETE ON operator_identities, operator_provider_visits TO cuota_app;
GRANT SELECT, INSERT, DELETE ON process_minutes TO cuota_app;
